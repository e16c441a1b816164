"""What TensorBoard shows of a pretraining run beside its figures."""

from keras_bert import files
from keras_bert.models.flops import training_flops
from keras_bert.tasks.pretraining.fillings_panel import fillings_panel
from keras_bert.training.embedding_projector import write_embeddings
from keras_bert.training.profile_trace import profiled


class PretrainingViews:
    """The masked sentences, the word embeddings, the trace and the share of the machine's peak.

    Args:
        model: the `BertForPreTraining`.
        vocabulary: of the run.
        validation: sources of the held-out documents, one for each phase.
        config: the `PretrainConfig`.
        run: the `RunFolder`.
        log: its `MetricsLog`.
        peak: FLOP/s of a matrix product on all devices of the run.
    """

    def __init__(self, model, vocabulary, validation, config, run, log, peak):
        self._model = model
        self._vocabulary = vocabulary
        self._validation = validation
        self._config = config
        self._run = run
        self._log = log
        self._peak = peak

    def fillings(self, done, phase):
        """Logs held-out sentences with the model's fillings after `done` steps, in rows of a phase."""
        rows = self._validation[phase].all_batches().take(1)
        batch = next(iter(rows.as_numpy_iterator()))
        self._log.table(done, "fillings", fillings_panel(self._model, self._vocabulary, batch))

    def utilization(self, phase, figures):
        """`flops_utilization`: the step's arithmetic a second, as a share of the peak."""
        phase = self._config.phases[phase]
        flops = training_flops(self._model.config, phase.sequence_length, phase.max_predictions_per_seq)
        return {"flops_utilization": flops * figures["examples_per_second"] / self._peak}

    def traced(self, batches, first_step):
        """The batches, a few of whose steps are traced where `training.profile_at` says so."""
        profile_at = self._config.training.profile_at
        folder = files.join(self._run.tensorboard, "training")
        return profiled(batches, first_step, profile_at, folder) if profile_at else batches

    def embeddings(self):
        """Writes the word embeddings for the projector page."""
        table = self._model.encoder.embeddings.word_embeddings.numpy()
        folder = files.join(self._run.tensorboard, "validation")
        write_embeddings(folder, "word_embeddings", table, self._vocabulary.tokens)
