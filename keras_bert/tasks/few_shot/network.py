"""The network of few-shot classification, and the loss that trains its encoder (SetFit; Tunstall et al. 2022)."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.pooling import mean_vectors
from keras_bert.layers.tensors import Batch, Tensor
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.tasks.few_shot.task import PART
from keras_bert.tasks.objective import ExampleObjective


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForFewShotClassification(EncoderWithHeads):
    """Multinomial logistic regression on the mean of a text's last states (Tunstall et al. 2022, section 3).

    Args:
        num_labels: the number of logits.

    Call arguments:
        inputs: the encoder's inputs.

    Returns a dict, both float32: `logits` [batch, labels]; `vectors` [batch, hidden], of length 1.

    Example:
        config = keras_bert.BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
        ids = np.ones((2, 8), "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids, "input_type_ids": ids * 0}
        keras_bert.BertForFewShotClassification(config, num_labels=3)(inputs)["logits"]      # [2, 3]
    """

    def __init__(self, config: BertConfig, num_labels: int, **kwargs: Any) -> None:
        super().__init__(config, with_pooler=False, **kwargs)
        self.num_labels = num_labels
        self.logistic_head = self.make_classifier(num_labels, PART, dropout_prob=0.0)
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        states = self.encoder(inputs, training=training)["sequence_output"]
        vectors = mean_vectors(states, inputs["input_mask"])
        return {"logits": self.logistic_head(vectors), "vectors": vectors}


class LabelPairsObjective(ExampleObjective):
    """Squared error of the cosine of two texts, over all pairs of the batch.

    The target is 1 for texts with the same label, 0 for others.

    As in SetFit, pairs with the same label count as much as the others: a text's error is the average of its means over
    the two kinds of pairs, or the mean over one kind if it has no pair of the other. SetFit draws the pairs and encodes
    both texts of each; here, each text is encoded once. Pairs are formed within a replica and slice of the batch.

    A batch has `labels` [batch] int32.
    """

    def figures_of(self, outputs: Batch, batch: Batch) -> dict[str, Tensor]:
        vectors, labels, weights = outputs["vectors"], batch["labels"], batch["example_weights"]
        same = ops.cast(ops.equal(labels[:, None], labels[None]), "float32")
        errors = ops.square(ops.matmul(vectors, ops.transpose(vectors)) - same)
        others = weights[None] * (1.0 - ops.eye(ops.shape(labels)[0]))  # All but the text itself.
        total, kinds = 0.0, 0.0
        for pairs in (others * same, others * (1.0 - same)):
            count = ops.sum(pairs, axis=1)
            total += ops.sum(errors * pairs, axis=1) / ops.maximum(count, 1e-9)
            kinds += ops.cast(count > 0, "float32")
        return {"loss": total / ops.maximum(kinds, 1.0)}
