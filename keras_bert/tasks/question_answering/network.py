"""Extractive question answering: at each token, a logit for the start and one for the end of the answer."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.heads import cross_entropy
from keras_bert.layers.tensors import Batch, Sums, Tensor
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.tasks.objective import ExampleObjective


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForQuestionAnswering(EncoderWithHeads):
    """A dense layer with two outputs on each token's last hidden state (paper, section 4.2; run_squad.py).

    Call arguments:
        inputs: the encoder's inputs.

    Returns a dict: `start_logits` and `end_logits`, each [batch, seq] float32, for padding too.

    Example:
        config = keras_bert.BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
        ids = np.ones((2, 8), "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids, "input_type_ids": ids * 0}
        keras_bert.BertForQuestionAnswering(config)(inputs)
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, with_pooler=False, **kwargs)
        # The original has no dropout here (run_squad.py, `create_model`).
        self.qa_outputs = self.make_classifier(2, "qa_outputs", dropout_prob=0.0)
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        states = self.encoded(inputs, training=training)["sequence_output"]
        logits = self.qa_outputs(states, training=training)
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}


class SpanObjective(ExampleObjective):
    """The mean of two cross-entropies, for the first and the last piece of the answer.

    Each is over the whole sequence, padding included (run_squad.py, `compute_loss`). A batch has `start_positions` and
    `end_positions` [batch] int32, both 0, the position of [CLS], if there is no answer.
    """

    figures = ("loss", "accuracy")

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{"loss": {"loss": scalar}, "accuracy": {"start": scalar, "end": scalar}}` of the model's outputs."""
        start = cross_entropy(outputs["start_logits"], batch["start_positions"])
        end = cross_entropy(outputs["end_logits"], batch["end_positions"])
        weights = batch["example_weights"]
        return {
            "loss": {"loss": 0.5 * ops.sum((start["loss"] + end["loss"]) * weights)},
            "accuracy": {"start": ops.sum(start["accuracy"] * weights), "end": ops.sum(end["accuracy"] * weights)},
        }
