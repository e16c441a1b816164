"""Continuing texts: the cache changes nothing, sampling draws as documented, and the results read as texts."""

import threading

import numpy as np
import pytest
from plain_decoding import shares_to_draw
from tiny import random_weights, sentencepiece_vocabulary, without_dropout

from keras_bert.config.inference import SamplingConfig
from keras_bert.core.errors import UserError
from keras_bert.inference.language_models import CachedReader, TextGenerator, chosen_token
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary, joined_pieces
from keras_bert.text.wordpiece import WordPieceTokenizer

WORDS = ["the", "cat", "sat", "on", "mat", ".", "##s", "a"]


@pytest.fixture(scope="module")
def parts():
    """(model, tokenizer, generator) with 24 positions."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *WORDS])
    model = BertForPreTraining(without_dropout(vocab_size=len(vocabulary), attention="causal"))
    random_weights(model)
    model.mlm_head.bias.assign(model.mlm_head.bias * 0)
    tokenizer = WordPieceTokenizer(vocabulary)
    return model, tokenizer, TextGenerator(model, tokenizer)


def uncached(model, ids):
    """The logits of the token after `ids`, from the whole model on the whole row."""
    row = np.array([ids], "int32")
    inputs = {"input_word_ids": row, "input_mask": row * 0 + 1, "input_type_ids": row * 0}
    return model(inputs)["mlm_logits"].numpy()[0, -1]


def test_cached_logits_are_those_of_the_whole_row(parts):
    """At every position of the model, in rows of two widths."""
    model, _, _ = parts
    reader, rng = CachedReader(model), np.random.default_rng(0)
    for begin, most in ((1, 23), (5, 6)):
        ids = [2, *rng.integers(5, 13, begin - 1).tolist()]
        logits = reader.begin(ids, most)
        for _ in range(most - 1):
            np.testing.assert_allclose(logits, uncached(model, ids), rtol=1e-5, atol=1e-5)
            ids.append(int(rng.integers(5, 13)))
            logits = reader.extend(ids[-1])
        np.testing.assert_allclose(logits, uncached(model, ids), rtol=1e-5, atol=1e-5)


def test_greedy_takes_the_best_token_that_a_text_may_have(parts):
    model, tokenizer, generate = parts
    ids = [2, *tokenizer.tokenize(["The cat sat"]).to_list()[0]]
    found = generate("The cat sat", SamplingConfig(6))
    for piece in [*found.pieces, *(["[SEP]"] if found.has_ended else [])]:
        logits = uncached(model, ids)
        logits[[0, 1, 2, 4]] = -np.inf
        assert piece == tokenizer.vocabulary.tokens[int(np.argmax(logits))]
        ids.append(tokenizer.vocabulary.ids[piece])
    assert found == generate("The cat sat", SamplingConfig(6)) and found.continued.startswith("The cat sat")
    assert generate("The cat sat\n", SamplingConfig(6)).continued.startswith("The cat sat\n")


def test_a_text_ends_at_the_separator_or_with_the_positions(parts):
    model, tokenizer, generate = parts
    before = model.mlm_head.bias.numpy()
    try:
        model.mlm_head.bias.assign(before + 1000.0 * (np.arange(len(before)) == tokenizer.vocabulary.sep_id))
        found = generate("the cat")
        assert found.has_ended and not found.pieces and found.continued == "the cat"
        model.mlm_head.bias.assign(before + 1000.0 * (np.arange(len(before)) == 5))
        found = generate("the cat", SamplingConfig(1000))
        assert not found.has_ended and found.pieces == ["the"] * 21 and found.continued == "the cat" + " the" * 21
    finally:
        model.mlm_head.bias.assign(before)


def test_two_threads_do_not_share_a_row(parts, monkeypatch):
    """A loaded model keeps its generator: a server's threads would write into each other's texts."""
    *_, generate = parts
    texts, extend, begun = ["the cat sat on", "a"], CachedReader.extend, []
    expected = [generate(text, SamplingConfig(8)) for text in texts]

    def extended(reader, token):
        if not begun:  # Another text begins, and may end, while this one is written.
            begun.append(threading.Thread(target=lambda: begun.append(generate(texts[1], SamplingConfig(8)))))
            begun[0].start()
            begun[0].join(0.3)
        return extend(reader, token)

    monkeypatch.setattr(CachedReader, "extend", extended)
    assert generate(texts[0], SamplingConfig(8)) == expected[0]
    begun[0].join()
    assert begun[1] == expected[1]


def test_sampling_is_a_function_of_the_seed_and_the_text(parts):
    *_, generate = parts
    first, again, other = (generate("the cat", SamplingConfig(15, 2.0, seed=seed)) for seed in (1, 1, 2))
    assert first == again and first.pieces != other.pieces


@pytest.mark.parametrize("top_k, top_p", [(None, None), (4, None), (None, 0.7), (5, 0.7), (None, 1.0), (1, None)])
def test_draws_have_the_probabilities_that_are_asked_for(top_k, top_p):
    """20,000 draws, compared with a plain reference for which tokens remain and in which shares."""
    rng = np.random.default_rng(0)
    logits, temperature = rng.normal(size=8), 0.7
    sampling = SamplingConfig(1, temperature, top_k, top_p)
    drawn = np.bincount([chosen_token(logits, sampling, rng) for _ in range(20_000)], minlength=8) / 20_000
    expected = shares_to_draw(logits, temperature, top_k, top_p)
    np.testing.assert_allclose(drawn, expected, atol=0.015)
    assert not drawn[expected == 0].any()


@pytest.mark.parametrize(
    "pieces, text",
    [
        (["the", "cat", "##s", "sat", "."], "the cats sat."),
        (["don", "'", "t", "(", "he", ")", "stop", ",", "ok", "?"], "don't (he) stop, ok?"),
        (["well", "-", "known", "20", "%"], "well-known 20%"),
        (["我", "们", "在", "a", "家", "。"], "我们在 a 家。"),
        (["rock", "'", "n", "'", "roll"], "rock ' n ' roll"),
    ],
)
def test_pieces_read_as_text(pieces, text):
    assert joined_pieces(pieces) == text


@pytest.mark.parametrize(
    "text, pieces, continued",
    [
        ("The dog", ["##s", "ran", "."], "The dogs ran."),
        ("don", ["'", "t"], "don't"),
        ("Dear Ann,\n\n", ["thank", "you", "."], "Dear Ann,\n\nthank you."),
        ("The dog\n", ["##s"], "The dog\ns"),
        (" ▁ ", ["ran"], " ▁ ran"),
        ("The dog \n", [], "The dog \n"),
        ("", ["the", "dog"], "the dog"),
    ],
)
def test_the_given_text_stays_as_it_is(parts, text, pieces, continued):
    """Line breaks included, though the model does not see them."""
    vocabulary = parts[1].vocabulary
    assert vocabulary.continued(text, pieces) == continued


@pytest.mark.parametrize(
    "text, pieces, continued",
    [
        ("The dog", ["s"], "The dogs"),
        ("The dog", ["s", "▁ran", "."], "The dogs ran."),
        ("The dog", ["▁", "2", "nd"], "The dog 2nd"),
        ("Dear Ann,\n\n", ["▁thank", "▁you"], "Dear Ann,\n\nthank you"),
        ("The dog \n", [], "The dog \n"),
        ("", ["▁the", "▁dog"], "the dog"),
    ],
)
def test_only_sentencepieces_own_marks_are_spaces(text, pieces, continued):
    """Pieces that only continue a word have no mark; they must not be joined as words."""
    assert sentencepiece_vocabulary().continued(text, pieces) == continued


def test_what_cannot_be_continued_is_refused(parts):
    model, tokenizer, generate = parts
    with pytest.raises(UserError, match="at most 22 pieces.*Received: 23"):
        generate("the " * 23)
    with pytest.raises(UserError, match="needs model.attention causal to generate"):
        TextGenerator(BertForPreTraining(without_dropout()), tokenizer, "other")
    with pytest.raises(ValueError, match="top_p: needs a temperature above 0"):
        SamplingConfig(top_p=0.5)
