"""An encoder with a decoder, trained to write the targets of a batch."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.heads import cross_entropy
from keras_bert.layers.tensors import Batch, Tensor
from keras_bert.models.encoder_decoder import EncoderDecoder
from keras_bert.tasks.objective import ExampleObjective

PADDING = -1  # In `target_ids`.


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForConditionalGeneration(EncoderDecoder):
    """An `EncoderDecoder` that also takes batches with targets instead of what the decoder reads.

    Call arguments:
        inputs: the encoder's inputs, and `target_ids` int32 [batch, targets], -1 at padding; or `decoder_input_ids`.

    Example:
        config = keras_bert.BartConfig(vocab_size=60, hidden_size=48, num_hidden_layers=2)
        ids = np.array([[0, 7, 2]], "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
        model = keras_bert.BertForConditionalGeneration(config)
        model({**inputs, "target_ids": np.array([[0, 8, 2, -1]], "int32")})["logits"]      # [1, 4, 60]
    """

    config: Any  # Of a kind with a decoder.

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Any]:
        if "decoder_input_ids" not in inputs and "target_ids" in inputs:
            read = shifted(inputs["target_ids"], self.config.decoder_start_token_id)
            inputs = {**inputs, "decoder_input_ids": read}
        return super().call(inputs, training=training)


def shifted(target_ids: Tensor, first: int) -> Tensor:
    """What a decoder reads before it writes each target: `first`, then all targets but the last, [batch, targets]."""
    # Padding becomes the id 0, which only later padding sees.
    return ops.concatenate([ops.full_like(target_ids[:, :1], first), ops.maximum(target_ids[:, :-1], 0)], axis=1)


def target_losses(logits: Tensor, target_ids: Tensor, smoothing: float = 0.0) -> Tensor:
    """The sum of the cross-entropies of each row's targets, [batch] float32.

    Args:
        logits: [batch, targets, vocab].
        target_ids: int32 [batch, targets], -1 at padding.
        smoothing: the share of each target's probability that is spread over all tokens, as in
            `torch.nn.CrossEntropyLoss(label_smoothing)`.
    """
    logits = ops.cast(logits, "float32")
    losses = cross_entropy(logits, ops.maximum(target_ids, 0))["loss"]
    if smoothing:
        of_all = ops.logsumexp(logits, axis=-1) - ops.mean(logits, axis=-1)
        losses = (1.0 - smoothing) * losses + smoothing * of_all
    return ops.sum(ops.where(target_ids == PADDING, 0.0, losses), axis=1)


class TargetObjective(ExampleObjective):
    """The mean cross-entropy of all target tokens of a batch.

    Args:
        smoothing: see `target_losses`.
    """

    def __init__(self, smoothing: float = 0.0) -> None:
        self.smoothing = smoothing

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """The number of target tokens, each with its example's weight."""
        tokens = ops.sum(ops.cast(batch["target_ids"] != PADDING, "float32"), axis=1)
        return {"loss": ops.sum(tokens * batch["example_weights"])}

    def figures_of(self, outputs: Batch, batch: Batch) -> dict[str, Tensor]:
        """The `losses` [batch] (see `target_losses`) or, without them, those of the `logits`."""
        losses = outputs.get("losses")
        if losses is None:
            losses = target_losses(outputs["logits"], batch["target_ids"], self.smoothing)
        return {"loss": losses}
