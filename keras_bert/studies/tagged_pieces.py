"""Tagged words as pieces in rows, with the place of each word."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_bert.core.errors import UserError
from keras_bert.inputs.word_windows import with_unknown
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.tasks.tagging.tagged_words import TaggedWords
from keras_bert.text.tokenizers import Tokenizer


@dataclasses.dataclass(frozen=True)
class TaggedPieces:
    """The words of tagged sentences, cut into pieces.

    Attributes:
        rows: int32 [pieces] each: sentences, or parts of long ones, without special tokens.
        row, start, length: int64 [words], the row of each word and its pieces there.
        tags: [words], the tag of each word; None for one without.
        is_known: bool [words], whether no piece is [UNK].
    """

    rows: Sequence[np.ndarray]
    row: np.ndarray
    start: np.ndarray
    length: np.ndarray
    tags: Sequence[str | None]
    is_known: np.ndarray

    def of_tag(self, tag: str) -> np.ndarray:
        """int64 [n], the words with this tag and without [UNK]."""
        return np.flatnonzero(self.is_known & (np.array(self.tags, object) == tag))

    def all_tags(self) -> list[str]:
        """The tags, the most frequent first."""
        found, counts = np.unique([tag for tag in self.tags if tag is not None], return_counts=True)
        return [str(tag) for tag in found[np.argsort(-counts, kind="stable")]]


def tagged_pieces(tokenizer: Tokenizer, tagged: TaggedWords, max_length: int) -> TaggedPieces:
    """Cuts words into pieces and sentences into rows of whole words.

    Args:
        tokenizer: the model's tokenizer.
        tagged: the words.
        max_length: the most tokens of a row, [CLS] and [SEP] included; a longer word is truncated.

    Raises:
        UserError: no word has a tag.
    """
    if tagged.labels is None:
        raise UserError(f"{tagged.origin}: needs words with tags. Received: {len(tagged.words):,} words without.")
    capacity = max_length - 2
    pieces = with_unknown(tokenizer.tokenize(tagged.words), tokenizer.vocabulary)[:, :capacity]
    ids, splits = pieces.values.numpy(), pieces.row_splits.numpy()
    length = np.diff(splits)
    starts_sentence = np.zeros(len(length), bool)
    starts_sentence[tagged.starts[:-1]] = True
    row, start, used, number = np.zeros(len(length), np.int64), np.zeros(len(length), np.int64), 0, -1
    for word, size in enumerate(length.tolist()):
        if starts_sentence[word] or used + size > capacity:
            number, used = number + 1, 0
        row[word], start[word] = number, used
        used += size
    firsts = np.flatnonzero(np.diff(row, prepend=-1))
    bounds = np.append(splits[firsts], splits[-1])
    rows = [ids[begin:end] for begin, end in zip(bounds[:-1], bounds[1:])]
    has_unknown = tf.reduce_any(pieces == tokenizer.vocabulary.unk_id, axis=1).numpy()
    return TaggedPieces(rows, row, start, length, tagged.labels, ~has_unknown)


def hidden_states(encoder: BertEncoder, layer: int | None = None) -> Callable[[dict[str, tf.Tensor]], tf.Tensor]:
    """A function (the encoder's inputs, each [batch, seq] int32) -> states, with the weights as they are then.

    Args:
        encoder: the encoder.
        layer: whose states are returned, float32 [batch, seq, hidden], 0 for the embeddings; None for all of them,
            [layers + 1, batch, seq, hidden].
    """
    spec = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[dict.fromkeys(("input_word_ids", "input_mask", "input_type_ids"), spec)])
    def states(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        found = encoder(inputs)["hidden_states"]
        return tf.stack(found) if layer is None else found[layer]

    return states
