"""Texts in, vectors out: tokenised, batched by length, pooled, and put back in order."""

import dataclasses
import itertools

import numpy as np

from keras_bert.config.pooling import check_embedding
from keras_bert.inference.encoder_inputs import encoder_inputs
from keras_bert.inference.pooling import PooledEncoder

BATCH_TOKENS = 4096
_SPECIAL_TOKENS = 2  # [CLS] and [SEP]


@dataclasses.dataclass
class EmbeddedTexts:
    """What `TextEmbedder` gives.

    Attributes:
        vectors: float32 [texts, width]; for `tokens` [pieces, hidden], one for each piece of all texts, in their order,
            none for [CLS] and [SEP].
        is_cut: bool [texts], whether a text was longer than the embedder takes.
        row_splits: int64 [texts + 1]; the pieces of text `i` are those from `row_splits[i]` to before
            `row_splits[i + 1]`.
        pieces: int32 [pieces], their ids.
        starts, ends: for `tokens`, int32 [pieces], where each is in its text, in code points; else None.
    """

    vectors: np.ndarray
    is_cut: np.ndarray
    row_splits: np.ndarray
    pieces: np.ndarray
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None

    def by_text(self):
        """`vectors` of pieces as a list with one array [pieces, hidden] for each text."""
        return [self.vectors[start:end] for start, end in itertools.pairwise(self.row_splits)]


class TextEmbedder:
    """Makes vectors of texts, all in one call; `tasks/embedding.py` does so with files of any size.

    Args:
        encoder: a `BertEncoder`.
        tokenizer: its `WordPieceTokenizer`.
        pooling: see `PooledEncoder`.
        max_length: tokens of a text, [CLS] and [SEP] included, at most; what is longer is cut. Without it, and at most,
            the encoder's positions.
        batch_tokens: tokens of a batch, padding included; a text that is longer is a batch of its own.

    Raises:
        UserError: the encoder has too few layers or positions for that.
    """

    def __init__(self, encoder, tokenizer, pooling="mean", max_length=None, batch_tokens=BATCH_TOKENS):
        check_embedding(encoder.config, pooling, max_length)
        self.max_length = max_length or encoder.config.max_position_embeddings
        self._model = PooledEncoder(encoder, pooling)
        self._tokenizer = tokenizer
        self._batch_tokens = batch_tokens

    def __call__(self, texts):
        """The `EmbeddedTexts` of a list of str."""
        is_by_token = self._model.pooling == "tokens"
        if is_by_token:
            found = self._tokenizer.tokenize_with_offsets(texts)
        else:
            found = (self._tokenizer.tokenize(texts),)
        given = found[0].row_lengths().numpy()
        lengths = np.minimum(given, self.max_length - _SPECIAL_TOKENS)
        splits = np.concatenate([[0], np.cumsum(lengths, dtype="int64")])
        # The pieces that are left of each text, in `found` and then in what is returned.
        kept = np.arange(splits[-1]) + np.repeat(found[0].row_starts().numpy() - splits[:-1], lengths)
        pieces, *offsets = (ragged.values.numpy()[kept] for ragged in found)
        rows = [pieces[start:end] for start, end in itertools.pairwise(splits)]

        vectors = np.empty((splits[-1] if is_by_token else len(lengths), self._model.width), "float32")
        for batch in _batches(lengths + _SPECIAL_TOKENS, self._batch_tokens):
            inputs = encoder_inputs([rows[index] for index in batch], self._tokenizer.vocabulary)
            output = self._model.predict_on_batch(inputs)
            if not is_by_token:
                vectors[batch] = output
                continue
            for index, states in zip(batch, output, strict=True):
                vectors[splits[index] : splits[index + 1]] = states[1 : 1 + lengths[index]]
        return EmbeddedTexts(vectors, given > lengths, splits, pieces, *offsets)


def _batches(lengths, batch_tokens):
    """Indices of the texts of each batch: texts of about the same length together, the longest first."""
    order = np.argsort(-lengths, kind="stable")
    first = 0
    while first < len(order):
        count = max(1, batch_tokens // lengths[order[first]])
        yield order[first : first + count]
        first += count
