"""The signatures of taggers and segmenters, against the layout, labels and loss of training."""

import numpy as np
import pytest
from hostile_texts import HOSTILE, random_hostile
from scipy.special import softmax
from served import ALBERT, ALBERT_VOCABULARY, HEADS
from shortened import shortened

from keras_bert.inputs.windows import begins_word
from keras_bert.tasks.tagging.crf_decoding import decode_words
from keras_bert.tasks.tagging.word_rows import lay_out_words
from keras_bert.text.basic_tokenizer import BasicTokenizer

KINDS = ("tagging", "features")


def by_rows_of_training(bert, sentences, max_length):
    """[words, labels]: the logits at each word of the rows that fine-tuning makes."""
    starts = np.cumsum([0, *map(len, sentences)])
    layout = lay_out_words([word for sentence in sentences for word in sentence], starts, bert.tokenizer, max_length)
    rows, logits = layout.rows, []
    for start, length in zip(rows.starts, rows.lengths):
        ids = rows.ids[start : start + length][np.newaxis]
        inputs = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
        logits.append(np.asarray(bert.model(inputs)["logits"])[0])
    return np.concatenate(logits)[layout.places]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_given_words_are_laid_out_and_labelled_as_in_training(served, kind):
    """Long sentences go by windows; every word has one label, from the window where its context is largest."""
    bert, function = served(kind, reading=(("max_length", 14),))
    random = np.random.default_rng(0)
    words = ["cat", "the", "sat", "catty", "x1y2z3", "\u200b", "the-cat", "abcdefghijklmnopqrstuvwxyz"]
    sentences = [["cat"], *([str(word) for word in random.choice(words, length)] for length in (3, 9, 40, 1, 17))]
    answers = function.answers_by_length(sentences, signature="words")
    assert [answer["num_words"] for answer in answers] == [len(sentence) for sentence in sentences]
    logits = by_rows_of_training(bert, sentences, 14)
    labels = [label for answer, sentence in zip(answers, sentences) for label in answer["labels"][: len(sentence)]]
    scores = [score for answer, sentence in zip(answers, sentences) for score in answer["scores"][: len(sentence)]]
    assert [label.decode() for label in labels] == [HEADS[kind].labels[index] for index in logits.argmax(axis=1)]
    np.testing.assert_allclose(scores, softmax(logits, axis=1).max(axis=1), atol=1e-5)
    assert all(set(answer["labels"][len(sentence) :]) <= {b""} for answer, sentence in zip(answers, sentences))


@pytest.mark.parametrize("kind", shortened((*KINDS, "crf", ALBERT)))
def test_a_text_is_its_words(served, kind):
    _, function = served(kind)
    text = "The cat's  mat, José sat. " * 3
    answer = {name: output[1] for name, output in function(["", text]).items()}
    words = [text[start:end] for start, end in zip(answer["starts"], answer["ends"])]
    assert words == ["The", "cat", "'", "s", "mat", ",", "José", "sat", "."] * 3
    if kind == ALBERT:
        return  # Words given alone are other pieces: "s" is "▁s".
    given = function.answer("words", [[word.lower().replace("é", "e") for word in words]])
    assert given["labels"][0].tolist() == answer["labels"].tolist()
    np.testing.assert_allclose(given["scores"][0], answer["scores"], atol=1e-5)
    joined = " ".join(words)
    assert [joined[start:end] for start, end in zip(given["starts"][0], given["ends"][0])] == words


def test_punctuation_is_a_word_of_its_own_in_sentencepiece(served):
    """A piece without "▁" used to join the word before it even after punctuation, and "▁" alone used to be a word."""
    bert, function = served(ALBERT)
    text = "He lives in (Paris), 1,990 x-ray it's; the-cat"
    answer = {name: output[0] for name, output in function([text]).items()}
    words = [text[start:end] for start, end in zip(answer["starts"], answer["ends"])]
    assert words == "He lives in ( Paris ) , 1 , 990 x - ray it ' s ; the - cat".split()
    ids, starts, _ = bert.tokenizer.tokenize_with_offsets([text])
    assert ALBERT_VOCABULARY.word_start_id in ids[0]
    begins = begins_word(ALBERT_VOCABULARY, ids.to_tensor())[0]
    assert starts[0][begins].numpy().tolist() == answer["starts"].tolist()


def test_words_of_any_bytes_are_those_of_the_basic_tokenizer(served):
    """Their number and their places, in code points of the text as given."""
    _, function = served("tagging")
    texts = [*HOSTILE, *random_hostile(60, seed=3)]
    answers = function(texts)
    splits = BasicTokenizer(lower_case=True)(texts).row_splits.numpy()
    assert answers["num_words"].tolist() == np.diff(splits).tolist()
    for row, text in enumerate(texts):
        decoded, count = text.decode("utf-8", "ignore"), answers["num_words"][row]
        starts, ends = answers["starts"][row, :count], answers["ends"][row, :count]
        assert (starts < ends).all() and (ends <= len(decoded)).all() and (np.diff(starts) >= 0).all()
        assert not any(decoded[start:end].isspace() for start, end in zip(starts, ends))


def test_empty_words_before_others_are_words_and_those_behind_are_none(served):
    _, function = served("tagging")
    answers = function.answer("words", [["", "cat", "", ""], ["", "", "", ""]])
    assert answers["num_words"].tolist() == [2, 0]
    assert answers["starts"].tolist() == [[0, 1], [0, 0]] and answers["ends"].tolist() == [[0, 4], [0, 0]]


def test_a_crf_decodes_the_words_of_training_together(served):
    """Across windows, as evaluation does. Given tokens, each token that begins a word gets its label."""
    bert, function = served("crf", reading=(("max_length", 14),))
    sentences = [["cat"], ["the", "catty"] * 9, ["sat", "x1y2z3", "the"]]
    answers = function.answers_by_length(sentences, signature="words")
    logits = by_rows_of_training(bert, sentences, 14)
    best, _ = decode_words(logits, np.cumsum([0, *map(len, sentences)]), bert.model.crf.scores())
    labels = [label for answer, sentence in zip(answers, sentences) for label in answer["labels"][: len(sentence)]]
    assert [label.decode() for label in labels] == [HEADS["crf"].labels[index] for index in best]
    scores = np.concatenate([answer["scores"][: len(sentence)] for answer, sentence in zip(answers, sentences)])
    assert (scores > 0).all() and (scores <= 1 + 1e-5).all()

    row = [bert.tokenizer.vocabulary.ids[piece] for piece in ("[CLS]", "c", "##a", "##t", "sat", "[SEP]", "[PAD]")]
    ids = np.array([row], "int32")
    mask = (ids > 0).astype("int32")
    by_token = function.answer("tokens", ids, mask, ids * 0)
    assert [place for place, label in enumerate(by_token["labels"][0]) if label] == [1, 4]
    assert np.flatnonzero(by_token["scores"][0]).tolist() == [1, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_labelled_each(served, kind):
    bert, function = served(kind)
    ids = np.array([[2, 7, 8, 9, 3, 0, 0, 0], [2, 9, 3, 0, 0, 0, 0, 0]], "int32")
    mask = (ids > 0).astype("int32")
    expected = bert.model({"input_word_ids": ids, "input_mask": mask, "input_type_ids": ids * 0})["logits"]
    answers = function.answer("tokens", ids, mask, ids * 0)
    real = mask > 0
    np.testing.assert_allclose(answers["logits"][real], np.asarray(expected)[real], atol=1e-5)
    best = np.asarray(expected).argmax(axis=-1)[real]
    assert [label.decode() for label in answers["labels"][real]] == [HEADS[kind].labels[index] for index in best]


TEXTS = ["The cat's mat", "", " 中文 thecat\u3000sat\u2028x ", "a", " \t "]


def test_words_are_parts_of_the_text_and_no_blank_is_lost(served):
    _, function = served("segment")
    texts = [*TEXTS, *(text.decode("utf-8", "ignore") for text in (*HOSTILE, *random_hostile(40, seed=2)))]
    answers = function(texts)
    for row, text in enumerate(texts):
        count = answers["num_words"][row]
        starts, ends = answers["starts"][row, :count], answers["ends"][row, :count]
        words = [word.decode("utf-8") for word in answers["words"][row, :count]]
        assert answers["segmented"][row].decode("utf-8") == " ".join(words)
        assert ["".join(text[start:end].split()) for start, end in zip(starts, ends)] == words
        assert "".join(words) == "".join(text.split())
        # Blanks of the text are between words.
        assert all(not any(character.isspace() for character in text[start:end]) for start, end in zip(starts, ends))
        assert set(answers["words"][row, count:].tolist()) <= {b""}
        assert (answers["scores"][row, :count] > 0).all() and (answers["scores"][row] < 1 + 1e-5).all()


def test_words_begin_where_the_labels_of_training_say(served):
    bert, function = served("segment")
    text = "thecatsatonthemat"
    answer = function([text])
    given = function.answer("words", [list(text)])
    labels = [label.decode() for label in given["labels"][0]]
    begins = [place for place, label in enumerate(labels) if label in "BS"]
    assert answer["starts"][0].tolist() == begins and len(begins) > 1
    row = [bert.tokenizer.vocabulary.ids[character] for character in ("[CLS]", *text, "[SEP]")]
    ids = np.array([row], "int32")
    logits = bert.model({"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0})["logits"]
    best, _ = decode_words(logits.numpy()[0, 1:-1], np.array([0, len(text)]), bert.model.crf.scores())
    assert ["BIES"[number] for number in best] == labels
