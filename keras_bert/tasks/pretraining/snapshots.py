"""The models that a pretraining run passed through: its checkpoints, opened one after the other."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from keras_bert import files, settings
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.model_writing import write_model_folder
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.errors import UserError
from keras_bert.inference.loading import model_tokenizer
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.tasks.pretraining.engine import pretraining_engine
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.strategy import make_strategy


class Snapshots:
    """The checkpoints of a finished pretraining run.

    Args:
        path: the run's folder.

    Attributes:
        run: the run's folder.
        config: its recipe.
        tokenizer: its tokenizer.
        steps: the steps that have a checkpoint, ascending.

    Raises:
        UserError: the folder does not hold a finished pretraining run with two checkpoints at least.
    """

    def __init__(self, path: str):
        self.run = RunFolder(path)
        if not files.exists(self.run.config_file):
            raise UserError(f"{path}: needs the folder of a pretraining run. Received: one without config.yaml.")
        values = settings.read_yaml(self.run.config_file)
        if "task" in values:
            raise UserError(f"{path}: needs a pretraining run. Received: one that fine-tuned on {values['task']}.")
        self.config = PretrainConfig.from_mapping(values)
        if "mlm" not in self.config.objective.terms:
            raise UserError(
                f"{path}: needs a run that trained a masked LM. "
                f"Received: objective.tokens: {self.config.objective.tokens}."
            )
        if self.run.results() is None:
            raise UserError(f"{path}: needs a finished run. Received: one without results.json. Resume it first.")
        self.tokenizer = model_tokenizer(open_model_folder(self.run.model))
        self._engine = pretraining_engine(self.config, self.run, make_strategy("one"), self.tokenizer.vocabulary)
        self.steps = self._engine.checkpoints.steps()
        if len(self.steps) < 2:
            raise UserError(
                f"{self.run.checkpoints}: needs snapshots of the run. Received: {len(self.steps)}. "
                "Train with training.keep_every=N, which keeps a checkpoint every N steps."
            )

    @property
    def model(self) -> BertForPreTraining:
        """The model, which has the weights of a snapshot inside `restored` alone."""
        return self._engine.model

    @contextlib.contextmanager
    def restored(self, step: int) -> Iterator[BertForPreTraining]:
        """A block in which the model is that of a step, or the average that the run would have exported there."""
        self._engine.checkpoints.restore(step)
        with self._engine.averaged_weights():
            yield self.model

    def write(self, step: int, folder: str) -> None:
        """Writes the model of a step as a model folder."""
        with self.restored(step) as model:
            write_model_folder(folder, model, self.tokenizer.vocabulary, self.tokenizer.lower_case)

    def nats_below_unigram(self, step: int) -> float | None:
        """At [MASK]s of held-out text, by the last validation up to a step; None before the first."""
        found = [line for line in self._validations if line["step"] <= step]
        return found[-1]["eval_mask_token_unigram_loss"] - found[-1]["eval_mask_token_loss"] if found else None

    @functools.cached_property
    def _validations(self) -> list[dict[str, Any]]:
        return [line for line in read_metrics(self.run.metrics_file) if "eval_mask_token_unigram_loss" in line]
