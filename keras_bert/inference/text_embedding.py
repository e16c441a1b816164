"""Embeds texts: tokenizes them, batches them by length, pools, and restores their order."""

import abc
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_bert.config.inference import LAST_LAYERS, SPARSE, check_embedding, vector_width
from keras_bert.config.reading import TRUNCATE
from keras_bert.core.errors import UserError
from keras_bert.core.settings import Positive, checked
from keras_bert.data.windows import batches_by_length
from keras_bert.inference.texts import encoder_inputs, text_list
from keras_bert.inputs.rows import PieceSpans
from keras_bert.inputs.windows import single_row
from keras_bert.layers.pooling import at_length_one, max_of_tokens, mean_of_tokens
from keras_bert.layers.tensors import Batch, Tensor
from keras_bert.models.bert.encoder import ConfiguredEncoder, last_state
from keras_bert.text.tokenizers import Tokenizer


class PooledEncoder(keras.Model):
    """An encoder with one of five kinds of pooling.

    - `mean`: the mean of the last layer over all tokens, [CLS] and [SEP] included, padding excluded
      (Reimers and Gurevych 2019, section 3).
    - `cls`: the last layer at [CLS], before the pooler.
    - `max`: the largest value of each dimension over the same tokens as for `mean`.
    - `last4`: the last four layers concatenated for each token, the last one at the end (paper, section 5.3), then the
      mean over the same tokens as for `mean`.
    - `tokens`: the last layer at every token, not pooled.

    Args:
        pooling: one of the above.
        normalize: whether to scale the vectors to length 1; ignored for `tokens`.

    Call arguments: `inputs`, the encoder's inputs.
    Returns: float32 [batch, width]; width is hidden, or 4 * hidden for `last4`. For `tokens`, [batch, seq, hidden].

    Raises:
        UserError: an unknown pooling, `sparse`, or `last4` for an encoder with fewer than four layers.

    Example:
        bert = keras_bert.load("runs/demo")
        inputs = bert.preprocessor(length="longest")(["The cat sat.", "A dog slept on the mat."])
        keras_bert.PooledEncoder(bert.encoder, "cls")(inputs)      # [2, hidden]
    """

    @checked
    def __init__(self, encoder: ConfiguredEncoder, pooling: str = "mean", normalize: bool = False) -> None:
        check_embedding(encoder.config, pooling)
        if pooling == SPARSE:
            raise UserError(
                f"Pooling {SPARSE}: needs a masked LM. Received: an encoder. Use load(MODEL).embedder({SPARSE!r})."
            )
        super().__init__()
        self.encoder, self.pooling, self.normalize = encoder, pooling, normalize
        self.width = vector_width(encoder.config, pooling)
        # XLA would recompile for every sequence length and every batch size.
        self.jit_compile = False

    def call(self, inputs: Batch) -> Tensor:
        outputs = self.encoder(inputs, training=False)
        states = outputs["sequence_output"]
        if self.pooling == "last4":
            states = ops.concatenate(outputs["hidden_states"][-LAST_LAYERS:], axis=-1)
        states = ops.cast(states, "float32")
        if self.pooling == "tokens":
            return states
        mask = inputs["input_mask"]
        if self.pooling == "cls":
            vectors = last_state(states, mask)[:, 0] if self.encoder.config.cls_is_last else states[:, 0]
        else:
            vectors = (max_of_tokens if self.pooling == "max" else mean_of_tokens)(states, mask)
        return at_length_one(vectors) if self.normalize else vectors


BATCH_TOKENS = 4096


@dataclasses.dataclass
class EmbeddedTexts:
    """The result of a `TextEmbedder`.

    Attributes:
        vectors: float32 [texts, width], for `sparse` a SciPy `csr_array`; for `tokens` [pieces, hidden], one for each
            piece of all texts in order, without [CLS] and [SEP].
        is_cut: bool [texts], whether a text was truncated.
        row_splits: int64 [texts + 1]; text `i` has the pieces `row_splits[i]:row_splits[i + 1]`.
        pieces: int32 [pieces], the ids of the pieces.
        starts, ends: for `tokens`, int32 [pieces], the offsets of each piece in its text, in code points; else None.
    """

    vectors: np.ndarray
    is_cut: np.ndarray
    row_splits: np.ndarray
    pieces: np.ndarray
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None

    def by_text(self) -> list[np.ndarray]:
        """Splits the `vectors` of pieces into an array [pieces, hidden] for each text."""
        return [self.vectors[start:end] for start, end in itertools.pairwise(self.row_splits)]


class Embedder(abc.ABC):
    """Tokenizes texts and passes them in batches of similar lengths through a model.

    Args:
        model: maps the encoder's inputs to an array per row.
        tokenizer, max_length, batch_tokens, long: see `TextEmbedder`.

    Attributes:
        after_batch: called after each batch with the share of the call's texts done, 0 to 1.
    """

    after_batch: Callable[[float], object] | None = None

    def __init__(self, model: keras.Model, tokenizer: Tokenizer, max_length: int, batch_tokens: int, long: str) -> None:
        self.max_length = max_length
        self._model, self._tokenizer = model, tokenizer
        self._batch_tokens, self._long = batch_tokens, long

    @abc.abstractmethod
    def __call__(self, texts: Sequence[str]) -> EmbeddedTexts:
        """Embeds `texts`. Raises `ValueError` unless they are a list of texts."""

    def _pieces(self, texts: Sequence[str], with_offsets: bool = False) -> EmbeddedTexts:
        """The pieces of texts left by truncation, without vectors yet."""
        texts = text_list(texts)
        found = self._tokenizer.tokenize_with_offsets(texts) if with_offsets else (self._tokenizer.tokenize(texts),)
        spans = single_row(PieceSpans.of(found[0]), self.max_length, self._long, self._tokenizer.vocabulary)
        lengths = spans.lengths.numpy()
        splits = np.concatenate([[0], np.cumsum(lengths, dtype="int64")])
        positions = np.arange(splits[-1], dtype="int32") - np.repeat(splits[:-1].astype("int32"), lengths)
        # The indices in `found` of the pieces left by truncation.
        kept = spans.spread(lambda column: tf.repeat(column, lengths)).indices(positions).numpy()
        values, *offsets = (ragged.values.numpy()[kept] for ragged in found)
        is_cut = found[0].row_lengths().numpy() > lengths
        return EmbeddedTexts(np.zeros((0, 0), "float32"), is_cut, splits, values, *offsets)

    def _outputs(self, texts: EmbeddedTexts) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields (the indices of its texts, the model's output for them) for each batch."""
        rows = [texts.pieces[start:end] for start, end in itertools.pairwise(texts.row_splits)]
        special = self._tokenizer.vocabulary.row_pattern.special_tokens(1)
        done = 0
        for batch in batches_by_length(np.diff(texts.row_splits) + special, self._batch_tokens):
            inputs = encoder_inputs([rows[index] for index in batch], self._tokenizer.vocabulary)
            output = self._model.predict_on_batch(inputs)
            done += len(batch)
            if self.after_batch:
                self.after_batch(done / len(rows))
            yield batch, output


class TextEmbedder(Embedder):
    """Embeds lists of texts. For files of any size, use the command `embed`.

    Args:
        pooling: see `PooledEncoder`.
        max_length: the maximum number of tokens per text, [CLS] and [SEP] included; longer texts are truncated. By
            default, and at most, the encoder's maximum length.
        batch_tokens: the maximum number of tokens per batch, padding included; a longer text is a batch of its own.
        long: how to truncate longer texts: `head_tail` keeps their beginning and end, anything else their beginning.
        normalize: see `PooledEncoder`.

    Attributes:
        after_batch: called after each batch with the share of the call's texts done, 0 to 1.

    Raises:
        UserError: an unknown pooling, or the encoder has too few layers or positions.

    Example:
        bert = keras_bert.load("runs/demo")
        embed = keras_bert.TextEmbedder(bert.encoder, bert.tokenizer, max_length=16)
        embed(["The cat sat.", "A dog slept on the mat."]).vectors      # [2, hidden] float32
    """

    @checked
    def __init__(
        self,
        encoder: ConfiguredEncoder,
        tokenizer: Tokenizer,
        pooling: str = "mean",
        max_length: int | None = None,
        batch_tokens: Positive[int] = BATCH_TOKENS,
        long: str = TRUNCATE,
        normalize: bool = False,
    ) -> None:
        check_embedding(encoder.config, pooling, max_length)
        longest = max_length or encoder.config.max_position_embeddings
        super().__init__(PooledEncoder(encoder, pooling, normalize), tokenizer, longest, batch_tokens, long)

    def __call__(self, texts: Sequence[str]) -> EmbeddedTexts:
        is_by_token = self._model.pooling == "tokens"
        found = self._pieces(texts, with_offsets=is_by_token)
        splits, lengths = found.row_splits, np.diff(found.row_splits)
        first = len(self._tokenizer.vocabulary.row_pattern.start)
        vectors = np.empty((splits[-1] if is_by_token else len(lengths), self._model.width), "float32")
        for batch, output in self._outputs(found):
            if not is_by_token:
                vectors[batch] = output
                continue
            for index, states in zip(batch, output, strict=True):
                vectors[splits[index] : splits[index + 1]] = states[first : first + lengths[index]]
        return dataclasses.replace(found, vectors=vectors)
