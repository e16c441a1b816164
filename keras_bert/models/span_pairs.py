"""Classification of two spans of a text or of a pair of texts."""

from typing import Any

import keras

from keras_bert.config.bert import BertConfig
from keras_bert.layers.span_pair_head import SpanPairHead
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.tensors import Batch, Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForSpanPairs(EncoderWithHeads):
    """A label for two spans of a row, such as whether a pronoun stands for a noun phrase.

    Args:
        config: the architecture of the encoder.
        num_labels: the number of logits.
        reads_cls: whether the head sees the pooled [CLS] besides the spans; if not, the encoder has no pooler.

    Call arguments:
        inputs: the encoder's inputs, and `span_starts` and `span_ends` int32 [batch, 2]: the first column of each span
            and one past the last.

    Returns a dict: `logits` [batch, labels] float32.
    """

    def __init__(self, config: BertConfig, num_labels: int, reads_cls: bool = True, **kwargs: Any) -> None:
        super().__init__(config, with_pooler=reads_cls, **kwargs)
        self.num_labels = num_labels
        self.reads_cls = reads_cls
        self.span_classifier = SpanPairHead(
            num_labels,
            config.hidden_size if self.bilstm is None else 2 * self.bilstm.lstm_size,
            reads_cls,
            config.head_dropout_prob,
            config.initializer_range,
            dtype=self.dtype_policy,
            name="span_classifier",
        )
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        return {"logits": self.classify(self.encoded(inputs, training=training), inputs, training)}

    def classify(self, outputs: dict[str, Tensor], inputs: Batch, training: bool = False) -> Tensor:
        """The logits, from what `encoded` returns and the places of the spans."""
        pooled = outputs["pooled_output"] if self.reads_cls else None
        states = outputs["sequence_output"]
        return self.span_classifier(states, inputs["span_starts"], inputs["span_ends"], pooled, training=training)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_labels": self.num_labels, "reads_cls": self.reads_cls}
