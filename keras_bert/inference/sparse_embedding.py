"""Sparse vectors over the vocabulary: a text's weight for each piece, from the masked LM (SPLADE)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import keras
import numpy as np
import scipy.sparse
from keras import ops
from scipy.sparse import csr_array

from keras_bert.config.inference import SPARSE, check_embedding
from keras_bert.config.reading import TRUNCATE
from keras_bert.inference.text_embedding import BATCH_TOKENS, EmbeddedTexts, Embedder
from keras_bert.layers.tensors import Batch, Tensor
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.tokenizers import Tokenizer

_MOST_LOGITS = 1 << 25  # Per batch: 128 MB in float32.


class SparseEncoder(keras.Model):
    """The `piece_weights` of a masked LM's logits.

    Call arguments: `inputs`, the encoder's inputs.
    Returns: float32 [batch, vocab].
    """

    def __init__(self, model: BertForPreTraining) -> None:
        super().__init__()
        self.model = model
        # XLA would recompile for every sequence length and every batch size.
        self.jit_compile = False

    def call(self, inputs: Batch) -> Tensor:
        return piece_weights(self.model(inputs, training=False)["mlm_logits"], inputs["input_mask"])


def piece_weights(logits: Tensor, input_mask: Tensor) -> Tensor:
    """Each text's weight for every piece of the vocabulary: [batch, vocab], 0 or more.

    It is the maximum over all tokens, [CLS] and [SEP] included, padding excluded, of log(1 + relu(logit)) (Formal et
    al. 2021, SPLADE v2, equations 1 and 6).

    Args:
        logits: [batch, seq, vocab].
        input_mask: [batch, seq], 0 for padding.
    """
    is_token = ops.cast(input_mask, "bool")[..., None]
    # Both functions increase, so the maximum may come first; a logit of 0 takes padding out.
    return ops.log1p(ops.relu(ops.max(ops.where(is_token, logits, 0.0), axis=1)))


class SparseEmbedder(Embedder):
    """Embeds lists of texts with a masked LM, like a `TextEmbedder` with an encoder.

    Its `EmbeddedTexts.vectors` are a SciPy `csr_array`, float32 [texts, vocab].

    Args:
        model: a masked LM.
        max_length, batch_tokens, long: see `TextEmbedder`; batches have fewer tokens if the vocabulary is large.

    Raises:
        UserError: the model does not predict masked tokens, or has too few positions.
    """

    def __init__(
        self,
        model: BertForPreTraining,
        tokenizer: Tokenizer,
        max_length: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
        long: str = TRUNCATE,
    ) -> None:
        config = model.config
        check_embedding(config, SPARSE, max_length)
        self._width = config.vocab_size
        most = max(1, min(batch_tokens, _MOST_LOGITS // self._width))
        longest = max_length or config.max_position_embeddings
        super().__init__(SparseEncoder(model), tokenizer, longest, most, long)

    def __call__(self, texts: Sequence[str]) -> EmbeddedTexts:
        found = self._pieces(texts)
        parts, order = [csr_array((0, self._width), dtype="float32")], [np.zeros(0, "int64")]
        for batch, output in self._outputs(found):
            parts.append(csr_array(output))
            order.append(batch)
        vectors = scipy.sparse.vstack(parts, "csr")[np.argsort(np.concatenate(order))]
        return dataclasses.replace(found, vectors=vectors)
