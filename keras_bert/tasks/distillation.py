"""Knowledge distillation: a task's loss plus the distance from a teacher's answers."""

from typing import Any

from keras import ops

from keras_bert.config.finetuning import REGRESSION, SINGLE_LABEL
from keras_bert.config.teacher import TeacherConfig
from keras_bert.layers.tensors import Batch, Sums, Tensor

# Key in a batch: float32 [batch, labels], -inf for choices that an example lacks; for tokens [batch, seq, 1, labels].
TEACHER_LOGITS = "teacher_logits"


class DistillationObjective:
    """The weighted sum of a task's own loss and the distance from a teacher's answers; see `Objective`.

    The loss is `(1 - weight) * own + weight * distance`, with the distance averaged over the examples: for a single
    label T² · KL(teacher at T ‖ student at T) (Hinton et al. 2015, section 2); for several labels the mean over the
    labels of this KL between each label's two outcomes; for a regression the squared error. The gradient of the KL is
    that of the cross-entropy with the teacher's probabilities.

    Args:
        own: the task's own objective, a `ClassificationObjective`.
        config: the weight and the temperature T.

    Attributes:
        terms: the names of the loss terms; their figures include the weights of the loss.
    """

    terms: tuple[str, ...] = ("labels", "teacher")

    def __init__(self, own: Any, config: TeacherConfig):
        self._own, self._config = own, config

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """The own objective's counts, with `loss` renamed to `labels`, and the count for the teacher's term."""
        counts = self._own.counts(batch)
        return {"labels": counts.pop("loss"), "teacher": ops.sum(self._own.weights(batch)), **counts}

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{"labels": {"loss": scalar}, "teacher": {"loss": scalar}}`, and the own objective's other sums."""
        sums, weight = self._own.sums(outputs, batch), self._config.weight
        distances = self._distances(outputs["logits"], batch[TEACHER_LOGITS])
        return {
            "labels": {"loss": (1 - weight) * sums.pop("loss")["loss"]},
            "teacher": {"loss": weight * ops.sum(distances * self._own.weights(batch))},
            **sums,
        }

    def _distances(self, logits: Tensor, teacher: Tensor) -> Tensor:
        """The distance of each example: float32 [batch]."""
        if self._own.problem_type == REGRESSION and not self._own.logistic:
            return ops.square(logits[:, 0] - teacher[:, 0])
        if self._own.problem_type == SINGLE_LABEL:
            return divergences(logits, teacher[:, : ops.shape(logits)[1]], self._config.temperature)
        return ops.mean(_binary_divergences(logits, teacher, self._config.temperature), axis=-1)


class TokenDistillation(DistillationObjective):
    """The same for word labels, with a distance per token, [batch, seq]; `own` is a `TaggingObjective`."""

    def _distances(self, logits: Tensor, teacher: Tensor) -> Tensor:
        return divergences(logits, teacher[:, :, 0], self._config.temperature)


def divergences(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """T² · KL(teacher ‖ student) of softmaxes at temperature T, over the last axis; -inf in both: a missing class."""
    is_there = teacher > float("-inf")
    own, wanted = (ops.log_softmax(values / temperature, axis=-1) for values in (logits, teacher))
    return temperature**2 * ops.sum(ops.where(is_there, ops.exp(wanted) * (wanted - own), 0.0), axis=-1)


def _binary_divergences(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """T² · KL(teacher ‖ student) of sigmoids at temperature T, elementwise."""
    logits, teacher = logits / temperature, teacher / temperature
    probabilities = ops.sigmoid(teacher)
    entropies = ops.binary_crossentropy(probabilities, teacher, from_logits=True)
    return temperature**2 * (ops.binary_crossentropy(probabilities, logits, from_logits=True) - entropies)
