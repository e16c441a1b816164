"""Classification and regression of texts or pairs of texts."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert.config.finetuning import MULTI_LABEL, PROBLEM_TYPES, REGRESSION, SINGLE_LABEL
from keras_bert.layers.heads import NextSentenceHead, cross_entropy
from keras_bert.layers.tensors import Batch, Tensor
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.tasks.objective import ExampleObjective


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForSequenceClassification(EncoderWithHeads):
    """Dropout and a dense layer on the pooled [CLS] (paper, section 4.1).

    Args:
        num_labels: the number of logits; 1 for regression.

    Call arguments:
        inputs: the encoder's inputs.

    Returns a dict: `logits` [batch, labels] float32.

    Example:
        config = keras_bert.BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
        ids = np.ones((2, 8), "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids, "input_type_ids": ids * 0}
        keras_bert.BertForSequenceClassification(config, num_labels=3)(inputs)["logits"]      # [2, 3]
    """

    def __init__(self, config: BertConfig, num_labels: int, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.num_labels = num_labels
        self.classifier = self.make_classifier(num_labels)
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        return {"logits": self.classifier(self.pooled(inputs, training), training=training)}


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForNextSentencePrediction(EncoderWithHeads):
    """Predicts whether a pair's second text follows its first, by the pretraining head (paper, section 3.1, task 2).

    Call arguments:
        inputs: the encoder's inputs.

    Returns a dict: `logits` [batch, 2] float32, for "it follows" and "it does not".

    Example:
        config = keras_bert.BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
        ids = np.ones((2, 8), "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids, "input_type_ids": ids * 0}
        keras_bert.BertForNextSentencePrediction(config)(inputs)["logits"]      # [2, 2]
    """

    num_labels = 2

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        deviation = config.initializer_range
        self.nsp_head = NextSentenceHead(config.hidden_size, deviation, dtype=self.dtype_policy, name="nsp_head")
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        return {"logits": self.nsp_head(self.pooled(inputs, training))}


class ClassificationObjective(ExampleObjective):
    """The losses of PyTorch and transformers.

    These are the cross-entropy for a single label; binary cross-entropy averaged over the labels for several; squared
    error for regression. A batch has `labels`: [batch] int32 for a single label, [batch, labels] float32 of 0 and 1 for
    several, [batch] float32 for regression. Padding examples need a valid label too.

    Args:
        problem_type: one of `config.finetuning.PROBLEM_TYPES`.
        class_weights: [labels], for a single label: the weight of each class in the loss, which is then the weighted
            mean, as in `torch.nn.CrossEntropyLoss(weight)`. The accuracy is not weighted.
        logistic: for regression: labels are from 0 to 1, and the loss is the binary cross-entropy.

    Raises:
        ValueError: an unknown `problem_type`, or `class_weights` for any but a single label.
    """

    def __init__(
        self, problem_type: str, class_weights: Sequence[float] | np.ndarray | None = None, logistic: bool = False
    ) -> None:
        if problem_type not in PROBLEM_TYPES:
            raise ValueError(f"problem_type: needs one of {', '.join(PROBLEM_TYPES)}. Received: {problem_type!r}.")
        if class_weights is not None and problem_type != SINGLE_LABEL:
            raise ValueError(f"class_weights: needs {SINGLE_LABEL}. Received: {problem_type}.")
        self.problem_type = problem_type
        self.logistic = logistic
        self.class_weights = None if class_weights is None else np.asarray(class_weights, "float32")
        self.figures = ("loss", "accuracy") if problem_type == SINGLE_LABEL else ("loss",)

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Float32 scalars: the total weight (`loss`) and, for a single label, the number of examples (`accuracy`)."""
        counts = super().counts(batch)
        if self.class_weights is not None:
            counts["loss"] = ops.sum(batch["example_weights"] * self._of_classes(batch))
        return counts

    def figures_of(self, outputs: Batch, batch: Batch) -> dict[str, Tensor]:
        logits, labels = outputs["logits"], batch["labels"]
        if self.logistic:
            return {"loss": ops.binary_crossentropy(labels, logits[:, 0], from_logits=True)}
        if self.problem_type == REGRESSION:
            return {"loss": ops.square(logits[:, 0] - labels)}
        if self.problem_type == MULTI_LABEL:
            return {"loss": ops.mean(ops.binary_crossentropy(labels, logits, from_logits=True), axis=-1)}
        figures = cross_entropy(logits, labels)
        if self.class_weights is not None:
            figures["loss"] *= self._of_classes(batch)
        return figures

    def _of_classes(self, batch: Batch) -> Tensor:
        """The weight of each example's class, [batch]."""
        return ops.take(self.class_weights, batch["labels"], axis=0)
