"""A signature of an export before tracing, and the conversion of its inputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from keras_bert.config.reading import ReadingConfig
from keras_bert.inputs.rows import PieceSpans, padded_length, padded_lengths, padded_rows
from keras_bert.inputs.windows import fit_rows, single_row
from keras_bert.models.bert.config import BertConfig
from keras_bert.text.tokenizers import Tokenizer


class Signature(NamedTuple):
    """A function from tensors to `{output: tensor}`, each with a leading batch dimension, and its inputs.

    Attributes:
        function: called with a tensor for each of `inputs`, in order.
        inputs: named specs.
        warm_up: for inputs that are neither texts nor tokens, `{name: function (word, length) -> a row}` of about
            `length` tokens, for a warm-up request.
    """

    function: Callable[..., dict[str, tf.Tensor]]
    inputs: tuple[tf.TensorSpec, ...]
    warm_up: Mapping[str, Callable[[str, int], Any]] = {}

    def traced(self) -> tf.types.experimental.ConcreteFunction:
        """The concrete function, with the names of the inputs and outputs."""
        return tf.function(self.function, autograph=False).get_concrete_function(*self.inputs)


FINEST = 8

TOKENS = tuple(
    tf.TensorSpec([None, None], tf.int32, name=name) for name in ("input_word_ids", "input_mask", "input_type_ids")
)


class TextInputs:
    """Converts texts, pairs of texts and tokens into the encoder's inputs, whatever bytes or values a client sends.

    Args:
        reading: the maximum length, and how longer texts are handled.
    """

    def __init__(self, config: BertConfig, tokenizer: Tokenizer, reading: ReadingConfig) -> None:
        self.config, self.tokenizer, self.reading = config, tokenizer, reading
        self.vocabulary = tokenizer.vocabulary
        self.lengths = padded_lengths(reading.max_length, FINEST)
        self._token_lengths = padded_lengths(config.max_position_embeddings, FINEST)

    def from_texts(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """The encoder's inputs for texts `[batch]`, a row each; see `single_row`."""
        return self.from_pieces(self._pieces(texts))

    def from_pieces(self, pieces: PieceSpans) -> dict[str, tf.Tensor]:
        """The encoder's inputs for the pieces of texts, a row each; see `single_row`."""
        row = single_row(pieces, self.reading.max_length, self.reading.long, self.vocabulary)
        return padded_rows([row], self.vocabulary, self.lengths)

    def from_columns(self, *columns: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor | None]:
        """The encoder's inputs for texts, or pairs of texts, `[batch]`, fitted into rows by `reading`.

        Returns: `(the encoder's inputs, int32 [rows] the text of each row)`, with None for the latter if every text is
            one row.
        """
        pieces, reading = [self._pieces(texts) for texts in columns], self.reading
        segments, texts = fit_rows(pieces, reading.max_length, reading.long, reading.stride, self.vocabulary)
        return padded_rows(segments, self.vocabulary, self.lengths), texts

    def from_tokens(
        self, input_word_ids: tf.Tensor, input_mask: tf.Tensor, input_type_ids: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """`(the encoder's inputs, is_valid [batch] bool)` for tokens from a client, each `[batch, seq]` int32.

        Columns that are padding in every row are dropped. A row with a token that has no embedding (an id, segment or
        position out of range) is not valid. It is computed with substitute values, because an error would fail all
        requests in the same server batch.
        """
        inputs, is_valid = self._checked(input_word_ids, input_mask, input_type_ids)
        places = tf.range(tf.shape(input_word_ids)[1])
        is_real = tf.not_equal(input_mask, 0)
        needed = tf.reduce_max(tf.concat([tf.reshape(tf.where(is_real, places + 1, 0), [-1]), [1]], axis=0))
        seq = padded_length(self._token_lengths, needed)
        beyond = [[0, 0], [0, tf.maximum(seq - tf.size(places), 0)]]
        return {name: tf.pad(column[:, :seq], beyond) for name, column in inputs.items()}, is_valid

    def as_rows(self, tokens: tf.Tensor) -> tf.Tensor:
        """`[batch, choices, seq]` as `[batch * choices, seq]`."""
        batch, choices, seq = tf.unstack(tf.shape(tokens))
        return tf.reshape(tokens, [batch * choices, seq])  # Not -1, which is ambiguous if there are no tokens.

    def _checked(
        self, input_word_ids: tf.Tensor, input_mask: tf.Tensor, input_type_ids: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """The inputs, with [PAD] or 0 instead of values without an embedding, and is_valid [batch] bool."""
        is_real = tf.not_equal(input_mask, 0)
        ids_fit = _is_within(input_word_ids, self.config.vocab_size)
        # A model with one segment gives it to every token; see `BertEmbeddings`.
        types_fit = _is_within(input_type_ids, max(self.config.type_vocab_size, 2))
        places = tf.range(tf.shape(input_word_ids)[1])
        fits = ids_fit & types_fit & (places < self.config.max_position_embeddings)
        columns = (
            tf.where(ids_fit, input_word_ids, self.vocabulary.pad_id),
            tf.cast(is_real, tf.int32),
            tf.where(types_fit, input_type_ids, 0),
        )
        inputs = {spec.name: column for spec, column in zip(TOKENS, columns, strict=True)}
        return inputs, tf.reduce_all(fits | ~is_real, axis=1)

    def _pieces(self, texts: tf.Tensor) -> PieceSpans:
        return PieceSpans.of(self.tokenizer.tokenize(texts))


def signatures_of_texts_and_tokens(
    text_inputs: TextInputs,
    answer_texts: Callable[..., dict[str, tf.Tensor]],
    answer: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]],
    columns: Sequence[str] = ("text",),
) -> dict[str, Signature]:
    """`serving_default` on texts, `tokens` on a client's tokens.

    Args:
        answer_texts: answers strings, [batch] for each of `columns`.
        answer: answers the encoder's inputs; the answers of invalid rows are replaced with NaN, 0 or "".
        columns: the names of the texts.
    """

    def answer_tokens(*tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        inputs, is_valid = text_inputs.from_tokens(*tokens)
        return without_invalid(answer(inputs), is_valid)

    texts = tuple(tf.TensorSpec([None], tf.string, name=name) for name in columns)
    return {"serving_default": Signature(answer_texts, texts), "tokens": Signature(answer_tokens, TOKENS)}


def without_invalid(outputs: dict[str, tf.Tensor], is_valid: tf.Tensor) -> dict[str, tf.Tensor]:
    """Replaces the outputs of invalid rows with NaN, 0 or ""; `is_valid` `[batch]` bool."""

    def kept(values: tf.Tensor) -> tf.Tensor:
        nothing = "" if values.dtype == tf.string else float("nan") if values.dtype.is_floating else 0
        of_rows = tf.reshape(is_valid, [-1, *[1] * (values.shape.rank - 1)])
        return tf.where(of_rows, values, tf.constant(nothing, values.dtype))

    return {name: kept(values) for name, values in outputs.items()}


def _is_within(values: tf.Tensor, size: int) -> tf.Tensor:
    return (values >= 0) & (values < size)
