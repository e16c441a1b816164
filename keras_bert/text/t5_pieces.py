"""T5's tokenizer in the TensorFlow graph: a SentencePiece model, and sentinels that texts may contain."""

import tensorflow as tf

from keras_bert.core.files import StrPath
from keras_bert.text.characters import row_ids
from keras_bert.text.model_pieces import ModelTokenizer
from keras_bert.text.t5_vocabulary import SENTINEL, T5Vocabulary

_NEVER = r"[^\s\S]"
_CUT = b"\xff"  # Never in UTF-8. tensorflow-text's regex_split, which needs no mark, ends a text at its first NUL.


class T5Tokenizer(ModelTokenizer):
    """Splits texts into the pieces of a T5.

    A sentinel in a text, such as "<extra_id_0>", is that token; the texts on either side of it are split separately.
    Unlike in transformers, other special tokens, such as "</s>", are text, and so is a sentinel in full-width letters.
    """

    _kind = T5Vocabulary
    vocabulary: T5Vocabulary

    def __init__(self, vocab_file: StrPath | T5Vocabulary) -> None:
        """`vocab_file`: the path of a spiece.model or a tokenizer.json, or a vocabulary."""
        super().__init__(vocab_file)
        numbers = "|".join(map(str, range(len(self.vocabulary.sentinel_ids))))
        self._pattern = f"<{SENTINEL}(?:{numbers})>" if numbers else _NEVER
        self._sentinel_ids = tf.constant(self.vocabulary.sentinel_ids, tf.int32)

    def pieces(self, texts: tf.Tensor) -> tf.RaggedTensor:
        parts = self._parts(texts)
        is_sentinel, sentinels = self._found(parts.values)
        return _joined(parts, super().pieces(tf.where(is_sentinel, "", parts.values)), sentinels)

    def pieces_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        parts = self._parts(texts)
        is_sentinel, sentinels = self._found(parts.values)
        ids, starts, ends = super().pieces_with_offsets(tf.where(is_sentinel, "", parts.values))
        # The offset of each part in its text, in bytes.
        lengths = parts.with_values(tf.strings.length(parts.values))
        begins = tf.cumsum(lengths.values, exclusive=True)
        begins -= tf.gather(begins, tf.gather(tf.cast(parts.row_splits, tf.int32), parts.value_rowids()))
        first = tf.gather(begins, row_ids(ids.row_splits, tf.size(ids.values)))
        of_sentinels = (
            sentinels.with_values(tf.boolean_mask(column, is_sentinel)) for column in (begins, begins + lengths.values)
        )
        of_pieces = (ids.with_values(tf.cast(column.values, tf.int32) + first) for column in (starts, ends))
        begun, ended = (_joined(parts, *both) for both in zip(of_pieces, of_sentinels))
        return _joined(parts, ids, sentinels), begun, ended

    def _parts(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Texts `[batch]` cut before and after each sentinel: string `[batch, (parts)]`."""
        cut = tf.strings.regex_replace(texts, f"({self._pattern})", _CUT + rb"\1" + _CUT)
        return tf.strings.split(cut, sep=_CUT)

    def _found(self, parts: tf.Tensor) -> tuple[tf.Tensor, tf.RaggedTensor]:
        """Whether each part `[parts]` of a text is a sentinel, and the ids of those that are, `[parts, (0 or 1)]`."""
        is_sentinel = tf.strings.regex_full_match(parts, self._pattern)
        numbers = tf.strings.regex_replace(tf.boolean_mask(parts, is_sentinel), r"\D", "")
        ids = tf.gather(self._sentinel_ids, tf.strings.to_number(numbers, tf.int32))
        return is_sentinel, tf.RaggedTensor.from_row_lengths(ids, tf.cast(is_sentinel, tf.int64), validate=False)


def _joined(parts: tf.RaggedTensor, pieces: tf.RaggedTensor, sentinels: tf.RaggedTensor) -> tf.RaggedTensor:
    """Regroups the tokens of parts `[parts, (n)]` by text `[batch, (n)]`; a part has either pieces or a sentinel."""
    both = tf.concat([pieces, sentinels], axis=1)
    return tf.RaggedTensor.from_row_splits(both.values, tf.gather(both.row_splits, parts.row_splits), validate=False)
