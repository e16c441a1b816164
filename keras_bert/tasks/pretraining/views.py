"""What TensorBoard shows of a pretraining run besides its figures."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from keras_bert import files
from keras_bert.config.bert import MASKED
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.data.batches.shard_batches import ShardBatches
from keras_bert.data.batches.text_batches import TextBatches
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.tasks.pretraining.fillings_panel import fillings_panel
from keras_bert.tasks.pretraining.phase_flops import phase_flops
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.training.embedding_projector import write_embeddings
from keras_bert.training.metrics_log import MetricsLog, NoMetricsLog
from keras_bert.training.profile_trace import profiled
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.step import Batch
from keras_bert.training.step_loop import LoopBatches


class PretrainingViews:
    """The filled-in sentences, the word embeddings, the profiler trace and the utilization of the devices.

    Args:
        model: the model.
        vocabulary: the run's vocabulary.
        validation: sources of the held-out documents, one per phase.
        config: the recipe.
        run: the run's folder.
        log: the run's log.
        peak: FLOP/s of a matrix product on all devices of the run.
    """

    def __init__(
        self,
        model: BertForPreTraining,
        vocabulary: Vocabulary,
        validation: Sequence[ShardBatches | TextBatches],
        config: PretrainConfig,
        run: RunFolder,
        log: MetricsLog | NoMetricsLog,
        peak: float,
    ):
        self._model = model
        self._vocabulary = vocabulary
        self._validation = validation
        self._config = config
        self._run = run
        self._log = log
        self._peak = peak

    def fillings(self, done: int, phase: int) -> None:
        """Logs held-out sentences with the model's fillings after `done` steps, in rows of a phase.

        A left-to-right model has none.
        """
        if self._config.model.predicts != MASKED:
            return
        rows = self._validation[phase].all_batches().take(1)
        batch = next(iter(rows.as_numpy_iterator()))
        self._log.table(done, "fillings", fillings_panel(self._model, self._vocabulary, batch))

    def utilization(self, phase: int, figures: Mapping[str, float]) -> dict[str, float]:
        """`flops_utilization`: the FLOP/s of the training steps as a share of the peak."""
        flops = phase_flops(self._config, phase, self._model.config)
        return {"flops_utilization": flops * figures["examples_per_second"] / self._peak}

    def traced(
        self, batches: Generator[Batch | LoopBatches, None, None], first_step: int
    ) -> Generator[Batch | LoopBatches, None, None]:
        """The same batches; the profiler traces a few steps from `training.profile_at` on, if that is set."""
        profile_at = self._config.training.profile_at
        folder = files.join(self._run.tensorboard, "training")
        return profiled(batches, first_step, profile_at, folder) if profile_at else batches

    def embeddings(self) -> None:
        """Writes the word embeddings for TensorBoard's projector."""
        table = self._model.encoder.embeddings.word_embeddings.numpy()
        folder = files.join(self._run.tensorboard, "validation")
        write_embeddings(folder, "word_embeddings", table, self._vocabulary.tokens)
