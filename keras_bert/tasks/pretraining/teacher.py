"""Pretraining with a frozen teacher, which reads every batch that the model reads."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras import ops

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.teacher import LOGITS, PretrainingTeacherConfig
from keras_bert.core.errors import UserError
from keras_bert.layers.tensors import Batch, Sums, Tensor
from keras_bert.models.bert.config import MASKED
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.tensor_names import MASKED_LM_HEAD
from keras_bert.tasks.distillation import divergences
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.training.engine import POLICIES

_EPSILON = 1e-6


class PretrainingTeacher:
    """The model that a run learns from, opened and checked.

    Args:
        config: the recipe, with `teacher.model`.

    Raises:
        UserError: the teacher cannot read the run's batches, or has no head for what is compared.
    """

    def __init__(self, config: PretrainConfig):
        assert config.teacher.model is not None
        self.folder = open_model_folder(config.teacher.model)
        self._config, name = config, config.teacher.model
        predicts, most = self.folder.config.predicts, self.folder.config.max_position_embeddings
        if predicts != MASKED:
            raise UserError(f"teacher.model: needs a model of {MASKED} tokens. Received: {name}, of {predicts} ones.")
        longest = max(phase.sequence_length for phase in config.phases)
        if most < longest:
            raise UserError(
                f"teacher.model: needs at least {longest} positions, as phases have. Received: {name}, with {most}."
            )
        if config.teacher.match == LOGITS and MASKED_LM_HEAD not in self.folder.parts():
            raise UserError(
                f"teacher.model: needs a masked LM head for teacher.match logits. Received: {name}, without one. "
                "Give --set teacher.match=states."
            )

    @property
    def mapped_size(self) -> int | None:
        """The size of the states that the model's own are mapped to; None if logits are compared."""
        return None if self._config.teacher.match == LOGITS else self.folder.config.hidden_size

    def require_vocabulary(self, tokenizer: Tokenizer) -> None:
        """Raises `UserError` unless the run's texts have the teacher's ids."""
        own, others = tokenizer.vocabulary, self.folder.vocabulary
        settings = TokenizerSettings(tokenizer.lower_case, prefix_space=tokenizer.prefix_space).in_effect(own)
        theirs, in_recipe = self.folder.tokenizer.in_effect(own), vars(self._config.vocabulary)
        for what, needed, received in (
            ("vocabulary", own.fingerprint[:12], others.fingerprint[:12]),
            *(
                (f"vocabulary.{name}" if name in in_recipe else name, value, theirs[name])
                for name, value in settings.items()
            ),
        ):
            if needed != received:
                raise UserError(
                    f"teacher.model: needs the run's {what} ({needed}). Received: {self.folder.name}, with {received}. "
                    f"Give --set vocabulary.file={self.folder.vocabulary_file} and the teacher's casing and "
                    "prefix_space, or another --teacher."
                )

    def objective(self, own: Any, strategy: tf.distribute.Strategy) -> TaughtObjective:
        """The loss of a run, with the teacher's part; its weights are loaded here.

        Args:
            own: the run's `PretrainingObjective`.
        """
        config, dtype = self.folder.config, POLICIES[self._config.training.precision]
        with strategy.scope():
            if self.mapped_size is None:
                model = BertForPreTraining(config, dtype=dtype)
            else:
                model = self.folder.model_kind.make_encoder(config, with_pooler=False, dtype=dtype)
            self.folder.load_into(model)
            model.trainable = False
        return TaughtObjective(own, model, self._config.teacher)


class TaughtObjective:
    """A pretraining loss and, as a term `teacher`, the weighted distance from a frozen model; see `Objective`.

    For `states` it is the squared error between `mapped_states` and the teacher's last states, normalized to mean 0 and
    variance 1, averaged over the dimensions and over the tokens that are not padding. For `logits` it is
    T² · KL(teacher at T ‖ student at T), averaged over the predictions of the masked LM.

    Args:
        own: the run's `PretrainingObjective`.
        model: the teacher: an encoder, or for logits a `BertForPreTraining`.
        config: what is compared, and the weight.
    """

    def __init__(self, own: Any, model: keras.Model, config: PretrainingTeacherConfig):
        self._own, self._model, self._config = own, model, config
        self.terms = (*own.terms, "teacher")

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """The run's own counts, and the total weight of what is compared."""
        return {**self._own.counts(batch), "teacher": ops.sum(self._weights(batch))}

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """The run's own sums, and `{"teacher": {"loss": scalar}}`."""
        answers = self._model(batch, training=False)
        if self._config.match == LOGITS:
            logits = outputs["mlm_logits"]  # The teacher may have more rows than the vocabulary.
            teacher = ops.stop_gradient(answers["mlm_logits"][..., : ops.shape(logits)[-1]])
            distances = divergences(logits, teacher, self._config.temperature)
        else:
            distances = _squared_errors(outputs["mapped_states"], answers["sequence_output"])
        loss = self._config.weight * ops.sum(distances * self._weights(batch))
        return {**self._own.sums(outputs, batch), "teacher": {"loss": loss}}

    def _weights(self, batch: Batch) -> Tensor:
        """float32 [batch, predictions], or [batch, seq] for states."""
        if self._config.match == LOGITS:
            return batch["masked_lm_weights"]
        return ops.cast(batch["input_mask"] > 0, "float32")


def _squared_errors(states: Tensor, teacher: Tensor) -> Tensor:
    """float32 [batch, seq]."""
    teacher = ops.stop_gradient(ops.cast(teacher, "float32"))
    mean, variance = ops.moments(teacher, axes=-1, keepdims=True)
    normalized = (teacher - mean) * ops.rsqrt(variance + _EPSILON)
    return ops.mean(ops.square(ops.cast(states, "float32") - normalized), axis=-1)
