"""Which words a masked LM gets right. A scripted model that knows one part of speech is the oracle."""

import numpy as np
import pytest
import tensorflow as tf
from finetuning import VOCABULARY as PLAIN

from keras_bert.core.errors import UserError
from keras_bert.studies.embryology import WordPredictions, by_tag, sampled
from keras_bert.studies.probes import tagged_pieces
from keras_bert.tasks.tagging.word_files import ConlluReader
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "the", "a", "cat", "##s", "sat", "##down", "on", "never"])
SENTENCES = [
    [("the", "DET"), ("cats", "NOUN"), ("sat", "VERB"), ("on", "ADP"), ("a", "DET"), ("cat", "NOUN")],
    [("a", "DET"), ("cats", "NOUN"), ("zebra", "NOUN"), ("satdown", "VERB")],
]


def treebank(path, sentences=SENTENCES):
    lines = []
    for words in sentences:
        lines += ["\t".join([str(n), form, "_", tag, *"______"]) for n, (form, tag) in enumerate(words, 1)] + [""]
    path.write_text("\n".join(lines) + "\n")
    return ConlluReader(str(path)).whole()


def pieces_of(path, max_length=32):
    return tagged_pieces(WordPieceTokenizer(VOCABULARY), treebank(path), max_length)


def id_of(*names):
    return [VOCABULARY.tokens.index(name) for name in names]


class KnowsNouns:
    """Gives back the pieces of nouns, and predicts `cat ##s` for two [MASK]s, `cat` for one; else `never` for all."""

    def __call__(self, inputs):
        ids = inputs["input_word_ids"]
        cat, s, other = (tf.constant(number, tf.int32) for number in id_of("cat", "##s", "never"))
        mask = VOCABULARY.mask_id
        after_mask = tf.pad(ids[:, :-1], [[0, 0], [1, 0]]) == mask
        guess = tf.where(ids == mask, tf.where(after_mask, s, cat), other)
        guess = tf.where((ids == cat) | (ids == s), ids, guess)
        logits = tf.one_hot(guess, len(VOCABULARY))
        return {"mlm_logits": tf.gather(logits, inputs["masked_lm_positions"], batch_dims=1)}


def test_a_model_that_knows_one_part_of_speech_scores_100_there_and_0_elsewhere(tmp_path):
    """Words of one piece and of two, seen and masked."""
    pieces = pieces_of(tmp_path / "dev.conllu")
    predictions = WordPredictions(KnowsNouns(), VOCABULARY, pieces)
    known = np.flatnonzero(pieces.is_known)
    seen = by_tag(pieces, known, predictions.reconstructed()[known])
    assert seen == {"NOUN": [3, 3], "DET": [0, 3], "VERB": [0, 2], "ADP": [0, 1]}
    masked = sampled(pieces, per_tag=10)
    assert sorted(masked) == list(known)
    assert by_tag(pieces, masked, predictions.filled_in(masked)) == {
        "NOUN": [3, 3], "DET": [0, 3], "VERB": [0, 2], "ADP": [0, 1]
    }  # fmt: skip


def test_a_word_counts_only_if_all_its_pieces_are_right(tmp_path):
    """`satdown` and `cats` have two pieces; a model that always says `##down` has half of each at most."""

    def says_down(inputs):
        (down,) = id_of("##down")
        return {"mlm_logits": tf.one_hot(tf.fill(tf.shape(inputs["masked_lm_positions"]), down), len(VOCABULARY))}

    pieces = pieces_of(tmp_path / "dev.conllu")
    predictions = WordPredictions(says_down, VOCABULARY, pieces)
    assert not predictions.reconstructed().any()
    assert not predictions.filled_in(sampled(pieces, 10)).any()


def test_rows_hold_whole_words_and_words_with_unknown_pieces_do_not_count(tmp_path):
    """A sentence too long for a row goes on in the next; `zebra` has no pieces in the vocabulary."""
    pieces = pieces_of(tmp_path / "dev.conllu", max_length=6)
    assert [len(row) for row in pieces.rows] == [4, 3, 4, 2]
    assert pieces.row.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert pieces.start.tolist() == [0, 1, 3, 0, 1, 2, 0, 1, 3, 0]
    assert pieces.is_known.tolist() == [True] * 8 + [False, True]
    assert pieces.all_tags() == ["NOUN", "DET", "VERB", "ADP"]


def test_the_sample_takes_evenly_from_each_tag(tmp_path):
    """From the beginning of the treebank alone, words would be of one kind of text."""
    pieces = tagged_pieces(
        WordPieceTokenizer(PLAIN), treebank(tmp_path / "long.conllu", [[("good", "ADJ"), ("w1", "NOUN")]] * 100), 32
    )
    chosen = sampled(pieces, per_tag=5)
    assert [pieces.tags[word] for word in chosen] == ["ADJ"] * 5 + ["NOUN"] * 5
    assert chosen[:5].tolist() == [0, 48, 98, 148, 198]


def test_a_text_without_tags_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"bare\.conllu: needs words with tags\. Received: 2 words without"):
        tagged_pieces(
            WordPieceTokenizer(PLAIN), treebank(tmp_path / "bare.conllu", [[("good", "_"), ("bad", "_")]]), 32
        )
