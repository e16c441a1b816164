"""Classification of two spans of a text or of a pair of texts."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.heads import ClassificationHead
from keras_bert.layers.tensors import Batch, PlainLayer, Tensor, new_dense
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_with_heads import EncoderWithHeads

_OUTSIDE = -1e9


@keras.saving.register_keras_serializable(package="keras_bert")
class SpanPairHead(PlainLayer):
    """Attention within each of two spans, then dropout and a dense layer (Wang et al. 2019, section 4.1).

    A span's vector is the mean of its states, weighted by a softmax over their scores (Lee et al. 2017, section 4). The
    first and the second span are scored with separate weights.

    Args:
        hidden_size: the size of a state.
        reads_cls: whether the dense layer also sees the pooled vector, before the vectors of the spans.
        dropout_prob, initializer_range: for the dense layer.

    Call arguments:
        states: [batch, seq, hidden].
        starts, ends: int32 [batch, 2], the first column of each span and one past the last.
        pooled: [batch, hidden]; None unless `reads_cls`.

    Returns: [batch, labels] float32, the logits.
    """

    def __init__(
        self,
        num_labels: int,
        hidden_size: int,
        reads_cls: bool = True,
        dropout_prob: float = 0.1,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self.hidden_size = hidden_size
        self.reads_cls = reads_cls
        self.dropout_prob = dropout_prob
        self.initializer_range = initializer_range
        # No bias: it would shift all scores of a span equally, which does not change their softmax.
        self.attention = new_dense(2, initializer_range, self.dtype_policy, "attention", use_bias=False)
        width = hidden_size * (3 if reads_cls else 2)
        self.classifier = ClassificationHead(
            num_labels, width, dropout_prob, initializer_range, dtype=self.dtype_policy, name="classifier"
        )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.attention.build((None, self.hidden_size))
        self.classifier.build(input_shape)

    def call(
        self, states: Tensor, starts: Tensor, ends: Tensor, pooled: Tensor | None = None, training: bool = False
    ) -> Tensor:
        columns = ops.arange(ops.shape(states)[1], dtype="int32")
        is_inside = ops.logical_and(columns >= starts[..., None], columns < ends[..., None])
        scores = ops.transpose(ops.cast(self.attention(states), "float32"), (0, 2, 1))
        weights = ops.softmax(ops.where(is_inside, scores, _OUTSIDE), axis=-1)
        spans = ops.matmul(ops.cast(weights, states.dtype), states)
        first, second = spans[:, 0], spans[:, 1]
        seen = [first, second] if pooled is None else [pooled, first, second]
        return self.classifier(ops.concatenate(seen, axis=-1), training=training)


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForSpanPairs(EncoderWithHeads):
    """A label for two spans of a row, such as whether a pronoun stands for a noun phrase.

    Args:
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
            self.state_size,
            reads_cls,
            config.head_dropout_prob,
            config.initializer_range,
            dtype=self.dtype_policy,
            name="span_classifier",
        )
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        self.require_inputs(inputs, "span_starts", "span_ends")
        return {"logits": self.classify(self.encoded(inputs, training=training), inputs, training)}

    def classify(self, outputs: dict[str, Tensor], inputs: Batch, training: bool = False) -> Tensor:
        """The logits, from the outputs of `encoded` and the columns of the spans in `inputs`."""
        pooled = outputs["pooled_output"] if self.reads_cls else None
        states = outputs["sequence_output"]
        return self.span_classifier(states, inputs["span_starts"], inputs["span_ends"], pooled, training=training)
