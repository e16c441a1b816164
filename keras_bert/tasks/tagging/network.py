"""Token classification."""

from typing import Any

import keras
from keras import ops
from numpy.typing import ArrayLike

from keras_bert.layers.crf import CrfTaggingHead, log_likelihood
from keras_bert.layers.heads import cross_entropy
from keras_bert.layers.tensors import Batch, Sums, Tensor
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.tasks.objective import ExampleObjective


@keras.saving.register_keras_serializable(package="keras_bert")
class BertForTokenClassification(EncoderWithHeads):
    """Dropout and a dense layer on each token's last hidden state (paper, section 5.3).

    Args:
        num_labels: the number of logits per token.

    Call arguments:
        inputs: the encoder's inputs.

    Returns a dict: `logits` [batch, seq, labels] float32, for padding too.

    Example:
        config = keras_bert.BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
        ids = np.ones((2, 8), "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids, "input_type_ids": ids * 0}
        keras_bert.BertForTokenClassification(config, num_labels=5)(inputs)["logits"]      # [2, 8, 5]
    """

    def __init__(self, config: BertConfig, num_labels: int, **kwargs: Any) -> None:
        super().__init__(config, with_pooler=False, **kwargs)
        self.num_labels = num_labels
        self.classifier = self.make_classifier(num_labels)
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        states = self.encoded(inputs, training=training)["sequence_output"]
        return {"logits": self.classifier(states, training=training)}


class TaggingObjective(ExampleObjective):
    """The cross-entropy at the first piece of each word (paper, section 5.3), averaged over words, not over sentences.

    A batch has `labels` [batch, seq] int32, -1 at tokens without a label.
    """

    figures = ("loss", "accuracy")

    def weights(self, batch: Batch) -> Tensor:
        """[batch, seq] float32: the weight of each labelled token, 0 at the others."""
        return ops.cast(batch["labels"] >= 0, "float32") * batch["example_weights"][:, None]

    def figures_of(self, outputs: Batch, batch: Batch) -> dict[str, Tensor]:
        return cross_entropy(outputs["logits"], ops.maximum(batch["labels"], 0))


@keras.saving.register_keras_serializable(package="keras_bert")
class BertCrfTagger(EncoderWithHeads):
    """A linear-chain CRF over the words of a sentence, whose emissions are a dense layer on their first pieces.

    Args:
        num_labels: the number of labels.
        forbidden: see `CrfTaggingHead`.

    Call arguments:
        inputs: the encoder's inputs. If they include `labels` [batch, seq], -1 at tokens without one, the labelled
            tokens are the chain; `sentence_starts` and `sentence_ends` [batch] then say whether it begins and ends
            where its sentence does.

    Returns a dict: `logits` [batch, seq, labels] float32, the emissions, for padding too; with labels also the
    `log_likelihood` [batch] of the labels, and `correct` [batch], how many of them have the highest marginal
    probability.

    Example:
        config = keras_bert.BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
        ids = np.ones((2, 8), "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids, "input_type_ids": ids * 0}
        keras_bert.BertCrfTagger(config, num_labels=5)(inputs)
    """

    def __init__(self, config: BertConfig, num_labels: int, forbidden: ArrayLike | None = None, **kwargs: Any) -> None:
        super().__init__(config, with_pooler=False, **kwargs)
        self.num_labels = num_labels
        self.crf = CrfTaggingHead(
            num_labels,
            self.state_size,
            forbidden,
            config.head_dropout_prob,
            config.initializer_range,
            dtype=self.dtype_policy,
            name="crf",
        )
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        states = self.encoded(inputs, training=training)["sequence_output"]
        logits = self.crf(states, training=training)
        if "labels" not in inputs:
            return {"logits": logits}
        labels = inputs["labels"]
        mask = labels >= 0
        chain = self.crf.chain(logits, mask, inputs["sentence_starts"], inputs["sentence_ends"])
        likelihood, marginals = log_likelihood(chain, labels)
        best = ops.cast(ops.argmax(marginals, axis=-1), "int32")
        correct = ops.sum(ops.cast(ops.logical_and(mask, best == labels), "float32"), axis=1)
        return {"logits": logits, "log_likelihood": likelihood, "correct": correct}

    @property
    def forbidden(self) -> list[list[bool]]:
        return self.crf.forbidden.tolist()


@keras.saving.register_keras_serializable(package="keras_bert")
class BertSegmenter(BertCrfTagger):
    """A `BertCrfTagger` whose words are the characters of a text, and whose labels say where words begin and end."""


class CrfObjective(TaggingObjective):
    """Like `TaggingObjective`, but the loss is the negative log-likelihood of the labels of each row, per word."""

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        weights = batch["example_weights"]
        return {
            "loss": {"loss": -ops.sum(outputs["log_likelihood"] * weights)},
            "accuracy": {"accuracy": ops.sum(outputs["correct"] * weights)},
        }
