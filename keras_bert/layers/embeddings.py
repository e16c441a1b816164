"""The input representation: word, position and segment embeddings, summed (paper, figure 2)."""

from collections.abc import Callable
from typing import Any, TypeAlias

import keras
import numpy as np
from keras import ops

from keras_bert.core.settings import NotNegative, Positive, checked
from keras_bert.layers.dropout import Dropout, drawn_bits
from keras_bert.layers.tensors import (
    PlainLayer,
    Tensor,
    first_out_of_range,
    new_layer_norm,
    new_table,
    truncated_normal,
)

# Function (table; ids) -> the table's rows at these ids.
LookUp: TypeAlias = Callable[[Any, Tensor], Tensor]

LONGEST_WAVE = 10_000.0


def sinusoids(positions: int, width: int) -> np.ndarray:
    """[positions, width] float32: sines in even columns, cosines in odd ones."""
    waves = LONGEST_WAVE ** (-np.arange(0, width, 2) / width)
    angles = np.arange(positions)[:, None] * waves
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(positions, -1)[:, :width].astype(np.float32)


def scaled_sinusoids(positions: int, width: int, deviation: float) -> np.ndarray:
    """`sinusoids` scaled to the standard deviation of the other embeddings, which they would dwarf."""
    return sinusoids(positions, width) * (deviation / np.sqrt(0.5))


@keras.saving.register_keras_serializable(package="keras_bert")
class BertEmbeddings(PlainLayer):
    """Sum of word, position and segment embeddings, then LayerNorm and dropout.

    All are learned, but `sinusoidal` fixes the position embeddings. With `type_vocab_size` 1 every token has segment 0,
    so both texts of a pair share it. The position embeddings have `first_position` rows before those of the
    `max_position_embeddings` tokens.

    Attributes:
        random_within: in a training step, rows shorter than this begin at a random position such that they end within
            it (SHAPE, Kiyono et al. 2021); 0, the default, lets all begin at the first.

    Call arguments: `input_word_ids` and `input_type_ids`, both [batch, seq] int32.
    Returns: [batch, seq, hidden].

    Raises:
        ValueError: a sequence is longer than `max_position_embeddings` or, in eager mode, an id is out of range. A
            compiled step cannot raise on every device, and a GPU or XLA would silently read another row, so there the
            vector of such a token is NaN.

    Example:
        ids = np.array([[2, 7, 8, 3]], "int32")
        keras_bert.BertEmbeddings(vocab_size=60, hidden_size=16)(ids, ids * 0)      # [1, 4, 16]
    """

    @checked
    def __init__(
        self,
        vocab_size: Positive[int],
        hidden_size: Positive[int],
        max_position_embeddings: Positive[int] = 512,
        type_vocab_size: Positive[int] = 2,
        initializer_range: float = 0.02,
        layer_norm_eps: float = 1e-12,
        dropout_rate: float = 0.1,
        sinusoidal: bool = False,
        first_position: NotNegative[int] = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sinusoidal = sinusoidal
        self.first_position = first_position
        self.random_within = 0
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.max_position_embeddings = max_position_embeddings
        self.type_vocab_size = type_vocab_size
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.dropout_rate = dropout_rate
        self.layer_norm = new_layer_norm(layer_norm_eps, self.dtype_policy, "layer_norm")
        self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy, name="dropout")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        self.add_tables()
        self.layer_norm.build((None, None, self.hidden_size))

    def add_tables(self) -> None:
        """Create the weights of the three embeddings."""
        self.word_embeddings = self._add_table("word_embeddings", self.vocab_size)
        positions = self.first_position + self.max_position_embeddings
        self.position_embeddings = self._add_table("position_embeddings", positions, self.sinusoidal)
        self.add_segments()

    def add_segments(self) -> None:
        """Create the weights of the segment embeddings."""
        self.token_type_embeddings = self._add_table("token_type_embeddings", self.type_vocab_size)

    def _add_table(self, name: str, rows: int, sinusoidal: bool = False) -> keras.Variable:
        initializer: Callable = truncated_normal(self.initializer_range)
        if sinusoidal:
            table = scaled_sinusoids(rows, self.hidden_size, self.initializer_range)
            initializer = keras.initializers.Constant(table)
        return new_table(self, name, rows, self.hidden_size, initializer, trainable=not sinusoidal)

    def call(self, input_word_ids: Tensor, input_type_ids: Tensor, training: bool = False) -> Tensor:
        seq = ops.shape(input_word_ids)[1]
        if isinstance(seq, int) and seq > self.max_position_embeddings:
            raise ValueError(
                f"The sequence needs at most max_position_embeddings ({self.max_position_embeddings}) tokens. "
                f"Received: {seq}. Truncate it or split it into windows."
            )
        input_type_ids = self.segments(input_type_ids)
        is_known = ops.logical_and(
            in_range(input_word_ids, self.vocab_size, "input_word_ids", "vocab_size"),
            in_range(input_type_ids, self.type_vocab_size, "input_type_ids", "type_vocab_size"),
        )
        words = ops.take(self.word_embeddings, input_word_ids, axis=0)
        positions = self._rows_of_positions(input_word_ids, training)
        # As in the original: with so few rows, a product with one-hot vectors is faster than a gather. It also spreads
        # the NaN of an id out of range over the whole vector at no cost.
        one_hot = ops.one_hot(input_type_ids, self.type_vocab_size, dtype="float32")
        one_hot = one_hot + ops.where(is_known, 0.0, float("nan"))[..., None]
        embedded = words + positions + ops.matmul(one_hot, self.token_type_embeddings)
        embedded = self.layer_norm(ops.cast(embedded, self.compute_dtype))
        return self.mapped(self.dropout(embedded, training=training))

    def _rows_of_positions(self, input_word_ids: Tensor, training: bool) -> Tensor:
        """The position embeddings, [seq, hidden], or [batch, seq, hidden] if each row begins at its own position."""
        table = self.position_embeddings[self.first_position :]
        rows, seq = ops.shape(input_word_ids)
        is_fixed = not training or not self.random_within or isinstance(seq, int) and seq >= self.random_within
        bits = None if is_fixed else drawn_bits((rows, 1))
        if bits is None:
            return table[:seq]
        others = ops.maximum(self.random_within - seq, 0)
        firsts = ops.mod(ops.cast(bits, "int32"), others + 1)
        return ops.take(table, firsts + ops.arange(seq, dtype="int32"), axis=0)

    def of_tokens(self, ids: Tensor, positions: Tensor, types: Tensor, look_up: LookUp) -> Tensor:
        """Compute `call` without dropout for single tokens, [tokens, hidden].

        `ids`, `positions` and `types` are int32 [tokens], in range; `look_up` reads rows of a table.
        """
        words = look_up(self.word_embeddings.value, ids)
        words += look_up(self.position_embeddings.value, self.first_position + positions)
        words += look_up(self.token_type_embeddings.value, self.segments(types))
        return self.mapped(self.layer_norm(words))

    def segments(self, input_type_ids: Tensor) -> Tensor:
        """The segments of tokens: as given, or all 0 if there is only one segment."""
        return input_type_ids if self.type_vocab_size > 1 else ops.zeros_like(input_type_ids)

    def mapped(self, embedded: Tensor) -> Tensor:
        """The first block's input, from the normalized sum [..., hidden]; in BERT that sum itself."""
        return embedded

    def compute_output_shape(
        self, input_word_ids_shape: tuple[int | None, ...], input_type_ids_shape: tuple[int | None, ...] | None = None
    ) -> tuple[int | None, ...]:
        return (*input_word_ids_shape, self.hidden_size)


@keras.saving.register_keras_serializable(package="keras_bert")
class WordEmbeddings(PlainLayer):
    """Word embeddings, then dropout: int32 [batch, seq] -> [batch, seq, width].

    An id out of range raises `ValueError` in eager mode; in a graph the vector of its token is NaN.
    """

    def __init__(
        self, vocab_size: int, width: int, initializer_range: float = 0.02, dropout_rate: float = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.width = width
        self.initializer_range = initializer_range
        self.dropout_rate = dropout_rate
        self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy, name="dropout")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        self.word_embeddings = new_table(self, "word_embeddings", self.vocab_size, self.width, self.make_initializer())

    def make_initializer(self) -> Callable:
        """The initializer of the table."""
        return truncated_normal(self.initializer_range)

    def call(self, input_word_ids: Tensor, training: bool = False) -> Tensor:
        return self.dropout(ops.cast(self.words(input_word_ids), self.compute_dtype), training=training)

    def words(self, input_word_ids: Tensor) -> Tensor:
        """The rows of the table, float32 [batch, seq, width]."""
        is_known = in_range(input_word_ids, self.vocab_size, "input_word_ids", "vocab_size")
        words = ops.take(self.word_embeddings, input_word_ids, axis=0)
        return words + ops.expand_dims(ops.where(is_known, 0.0, float("nan")), -1)


def in_range(ids: Tensor, size: int, name: str, size_name: str) -> Tensor:
    """Whether each id is in range: [batch, seq] bool. Raises `ValueError` in eager mode if any is not."""
    if (wrong := first_out_of_range(ids, size)) is not None:
        raise ValueError(
            f"{name} needs ids from 0 to {size_name} - 1 ({size - 1}). Received: {wrong}. "
            "Was the text tokenized with another model's vocabulary?"
        )
    return ops.logical_and(ids >= 0, ids < size)
