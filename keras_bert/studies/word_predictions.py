"""Which words a masked LM gets right: those it sees, and those it does not (Chiang et al. 2020, section 3)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert.inference.encoder_inputs import encoder_inputs
from keras_bert.inference.text_embedding import batches_by_length
from keras_bert.studies.tagged_pieces import TaggedPieces
from keras_bert.text.vocabulary import Vocabulary

_SPECIAL_TOKENS = 2
_MOST_LOGITS = 1 << 25  # In one batch: 128 MiB.
_MOST_TOKENS = 4096

Masked = Callable[[dict[str, Any]], dict[str, Any]]  # A `BertForPreTraining`, or what stands for it.


class WordPredictions:
    """What a masked LM predicts for the words of tagged sentences; a word is right if all its pieces are the argmax.

    Args:
        model: the model, whose weights may change between calls.
        vocabulary: its vocabulary.
        pieces: the sentences.
    """

    def __init__(self, model: Masked, vocabulary: Vocabulary, pieces: TaggedPieces):
        self._vocabulary = vocabulary
        self._pieces = pieces
        spec = tf.TensorSpec([None, None], tf.int32)
        names = ("input_word_ids", "input_mask", "input_type_ids", "masked_lm_positions")

        @tf.function(input_signature=[dict.fromkeys(names, spec)])
        def predict(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
            return tf.argmax(model(inputs)["mlm_logits"], axis=-1, output_type=tf.int32)

        self._predict = predict

    def reconstructed(self) -> np.ndarray:
        """bool [words]: whether the model gives each word back where it sees it, with nothing masked."""
        pieces = self._pieces
        found = self._predicted(pieces.rows, [np.arange(len(row)) for row in pieces.rows])
        is_right = [given == row for given, row in zip(found, pieces.rows)]
        return np.array(
            [
                is_right[row][start : start + length].all()
                for row, start, length in zip(pieces.row, pieces.start, pieces.length)
            ]
        )

    def filled_in(self, words: np.ndarray) -> np.ndarray:
        """bool [n]: whether the model predicts each of these words with all its pieces masked, one word at a time."""
        pieces = self._pieces
        rows, places = [], []
        for word in words:
            place = pieces.start[word] + np.arange(pieces.length[word])
            row = pieces.rows[pieces.row[word]].copy()
            row[place] = self._vocabulary.mask_id
            rows.append(row)
            places.append(place)
        found = self._predicted(rows, places)
        return np.array(
            [(given == pieces.rows[pieces.row[word]][place]).all() for word, given, place in zip(words, found, places)]
        )

    def _predicted(self, rows: Sequence[np.ndarray], places: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The ids that the model finds likeliest at these places of each row, which count from the first piece."""
        found = [np.zeros(0, np.int32)] * len(rows)
        tokens = min(_MOST_TOKENS, _MOST_LOGITS // len(self._vocabulary))
        for batch in batches_by_length(np.array([len(row) for row in rows]) + _SPECIAL_TOKENS, tokens):
            inputs = encoder_inputs([rows[index] for index in batch], self._vocabulary)
            positions = np.zeros((len(batch), max(len(places[index]) for index in batch)), np.int32)
            for number, index in enumerate(batch):
                positions[number, : len(places[index])] = places[index] + 1  # After [CLS].
            given = self._predict({**inputs, "masked_lm_positions": positions}).numpy()
            for number, index in enumerate(batch):
                found[index] = given[number, : len(places[index])]
        return found


def sampled(pieces: TaggedPieces, per_tag: int) -> np.ndarray:
    """int64 [n], at most `per_tag` words of each tag, taken evenly from all of them."""
    chosen = []
    for tag in pieces.all_tags():
        words = pieces.of_tag(tag)
        chosen.append(words[np.linspace(0, len(words) - 1, min(per_tag, len(words))).astype(np.int64)])
    return np.concatenate(chosen)


def by_tag(pieces: TaggedPieces, words: np.ndarray, is_right: np.ndarray) -> dict[str, list[int]]:
    """`{tag: [right words, words]}` of some words.

    Args:
        pieces: the sentences.
        words: int64 [n], the words.
        is_right: bool [n], whether each is right.
    """
    tags = np.array(pieces.tags, object)[words]
    return {
        tag: [int(is_right[tags == tag].sum()), int((tags == tag).sum())]
        for tag in pieces.all_tags()
        if (tags == tag).any()
    }
