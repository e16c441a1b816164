"""Pretraining, whole: text → vocabulary → shards → training → validation → model folder."""

import dataclasses
import functools
import time

from keras_bert.checkpoints.hub_name import is_hub_name
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.model_writing import write_model_folder
from keras_bert.inference.fill_mask import fill_masks
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.pretraining_objective import PretrainingObjective
from keras_bert.tasks.model_cards import pretraining_card
from keras_bert.tasks.phased_batches import PhasedBatches
from keras_bert.tasks.pretraining.batch_sources import open_batch_sources
from keras_bert.tasks.pretraining.first_values import begin, go_on_from, text_values
from keras_bert.tasks.pretraining.views import PretrainingViews
from keras_bert.tasks.run_data import require_same_text
from keras_bert.training.engine import make_engine
from keras_bert.training.figures_table import Column
from keras_bert.training.loop import Loop
from keras_bert.training.matmul_peak import matmul_peak
from keras_bert.training.metrics import MetricSums, perplexity
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.processes import (
    agreement,
    by_chief,
    chief_says,
    failing_together,
    process_count,
    process_number,
    settle,
)
from keras_bert.training.run_context import run_context
from keras_bert.training.step import Step
from keras_bert.training.strategy import check_divisible, describe, make_strategy

_COLUMNS = (
    Column("perplexity", "perplexity", "{:,.1f}".format),
    Column("masked LM", "mlm_accuracy", "{:.1%}".format),
    Column("next sent.", "nsp_accuracy", "{:.1%}".format),
)


def pretrain(config, run, report=print, command=None):
    """Trains by the recipe in `run`, going on from its newest checkpoint.

    Returns the results written there; None in a worker that is not the one that writes.

    Args:
        config: a `PretrainConfig`.
        run: the `RunFolder`.
        report: takes one line of text at a time.
        command: what was typed, for the model card; None where that is not known.

    Raises:
        UserError: for whatever in the recipe, the data or the folder cannot be used.
    """
    began = time.perf_counter()
    with run:
        pretraining = Pretraining(config, run, report)
        if pretraining.is_finished():
            return run.results() if pretraining.is_chief else None
        pretraining.build()
        first_step = pretraining.restore()
        done, evaluation = pretraining.train(first_step)
        # The others wait: TensorFlow takes one that leaves for lost, and ends the chief in the midst of writing.
        return by_chief(pretraining.strategy, lambda: pretraining.write_results(done, evaluation, began, command))


class Pretraining:
    """One process of a pretraining run, from its settings to its model folder.

    Args:
        config: a `PretrainConfig`.
        run: the `RunFolder`, which is settled here.
        report: takes one line of text at a time.

    Attributes (after `build`):
        strategy, sources, engine, batches: the parts of the run.
        is_chief: whether this process writes the run's files.
    """

    def __init__(self, config, run, report=print):
        self.config = config
        if config.init and is_hub_name(config.init):  # Written down as the very model that it is today.
            self.config = config = dataclasses.replace(config, init=self._init.name)
        self.run = run
        self.strategy = make_strategy(config.training.strategy, config.training.devices, config.training.tpu)
        self.worker = process_number(self.strategy)
        self.is_chief = self.worker == 0
        self.report = report if self.is_chief else _say_nothing
        for index, phase in enumerate(config.phases):
            check_divisible(phase.batch_size, self.strategy, config.training.accumulation, f"phases.{index}.batch_size")
        settle(self.strategy, run, config, self.report)
        if config.data.source == "text":
            by_chief(self.strategy, lambda: require_same_text(run, config.data.files))

    @functools.cached_property
    def _init(self):
        """The `ModelFolder` of `init`, which a run that goes on does without."""
        return open_model_folder(self.config.init)

    def is_finished(self):
        """Whether the run is over already, as its chief sees it."""
        return chief_says(self.strategy, self._found_finished)

    def _found_finished(self):
        results, training = self.run.results(), self.config.training
        # What an older version of this program finished ran by steps.
        if not results or results.get("minutes", 0.0) != training.minutes:
            return False
        if not training.minutes and results["steps"] != training.steps:
            return False
        more = "--minutes" if training.minutes else "--steps"
        self.report(f"{self.run.path} is finished: {results['steps']} steps. {more} N goes on, --fresh starts over.")
        return True

    def build(self):
        """Makes the run's data where they are not there yet, and every part of the run."""
        config = self.config
        self.report(describe(self.strategy))

        def sources():
            return open_batch_sources(config, self.run.data, self.report, self.worker)

        made = by_chief(self.strategy, sources)  # The others then find what was not there yet.
        with failing_together(agreement(self.strategy)):
            self.sources = made or sources()
        self.tokenizer = self.sources.tokenizer
        vocabulary = self.tokenizer.vocabulary
        training, predicts_next = config.training, config.objective.pair == "nsp"

        def model(dtype):
            made = BertForPreTraining(dataclasses.replace(config.model, vocab_size=len(vocabulary)), dtype=dtype)
            if not predicts_next:
                # They get no gradient; weight decay would shrink them all the same.
                made.encoder.pooler.trainable = made.nsp_head.trainable = False
            return made

        self.engine = make_engine(
            self.strategy, self.run, training, training.steps, [phase.share for phase in config.phases], model,
            lambda budget: make_optimizer(config.optimizer, training.steps, budget.share),
            PretrainingObjective(vocabulary.mask_id, next_sentence=predicts_next), config.optimizer.clip_norm,
        )  # fmt: skip
        self.report(f"The model has {self.engine.model.count_params():,} parameters.")

        self.batches = PhasedBatches(
            self.sources.training, self.engine.budget, self.distribute, training.steps_per_loop
        )
        measured = PretrainingObjective(vocabulary.mask_id, self.sources.unigram_nats, predicts_next)
        self._evaluation_step = Step(self.strategy, self.engine.model, measured)
        self._validation = {}

    def distribute(self, dataset):
        """A `tf.data.Dataset` spread over the replicas."""
        return self.strategy.experimental_distribute_dataset(dataset)

    def restore(self):
        """Takes the newest checkpoint, or begins; returns the steps done."""
        return self.engine.start(self.run, self.config, self.begin, self.report)

    def begin(self):
        """Gives the model the weights of `init`, or else its first values by the settings of `initialization`."""
        config, needs_text = self.config, not self.config.init and self.config.initialization.needs_text

        def values():
            return text_values(config, self.sources, self.run.data, self.report)

        made = by_chief(self.strategy, values) if needs_text else None  # The others then find what was not there yet.
        with failing_together(agreement(self.strategy)):
            if config.init:
                go_on_from(self.engine.model, self._init, self.tokenizer.vocabulary, self.report)
            else:
                begin(self.engine.model, config, (made or values()) if needs_text else None)

    def evaluate(self, phase):
        """`{name: figure}` of the held-out documents, in rows of the phase numbered `phase`."""
        sums = MetricSums(self.engine.step.objective.terms)
        for batch in self._validation_batches(phase):
            sums.add(self._evaluation_step.evaluate(batch))
        figures = {f"eval_{name}": value for name, value in sums.take().items()}
        return {**figures, "eval_perplexity": perplexity(figures["eval_mlm_loss"])}

    def _validation_batches(self, phase):
        """The same at every validation, so that their graph is built once."""
        if phase not in self._validation:
            wanted = -(-self.config.training.evaluation_examples // self.config.phases[phase].batch_size)
            self._validation[phase] = self.distribute(self.sources.validation[phase].all_batches().take(wanted))
        return self._validation[phase]

    def train(self, first_step):
        """Trains from `first_step` to the end; returns the steps done and the last validation figures."""
        training, engine = self.config.training, self.engine

        def batch():
            return self._batch_key(loop.done)

        with run_context(self.run, self.strategy, training, engine.budget, first_step, batch, _COLUMNS) as context:
            views = PretrainingViews(
                engine.model, self.tokenizer.vocabulary, self.sources.validation, self.config, self.run, context.log,
                self.matmul_peak(),
            )  # fmt: skip

            def batches(step):
                return views.traced(self.batches(step), step) if self.is_chief else self.batches(step)

            def evaluate(done):
                if self.is_chief:
                    views.fillings(done, self._phase_of(done))
                return self.evaluate(self._phase_of(done))

            def derive(done, figures):
                utilization = views.utilization(self._phase_of(done), figures)
                return {"perplexity": perplexity(figures["mlm_loss"]), **utilization}

            loop = Loop(engine, batches, evaluate, training, context, derive)
            evaluation = loop.run(first_step)
            if self.is_chief:
                views.embeddings()
        return loop.done, evaluation

    def matmul_peak(self):
        """FLOP/s of a matrix product on all devices of the run."""
        dtype = self.config.training.precision
        peak = matmul_peak(self.strategy, dtype) * process_count(self.strategy)
        self.report(f"A matrix product runs at {peak / 1e9:,.0f} GFLOP/s here in {dtype}.")
        return peak

    def _phase_of(self, done):
        """The phase of the last of `done` steps."""
        phase = self.engine.budget.phase(max(done - 1, 0))
        return len(self.config.phases) - 1 if phase is None else phase

    def _batch_key(self, done):
        phase = self._phase_of(done + 1)
        return f"phases.{phase}.batch_size", self.config.phases[phase].batch_size

    def write_results(self, done, evaluation, began, command=None):
        """Writes the model folder and results.json; `began` is when the process did, by `time.perf_counter`."""
        write_model_folder(
            self.run.model, self.engine.model, self.tokenizer.vocabulary, self.tokenizer.lower_case,
            card=pretraining_card(self.config, self.run.path, done, evaluation, command),
        )  # fmt: skip
        examples = fill_masks(self.engine.model, self.tokenizer, self.config.examples)
        results = {
            "steps": done,
            "minutes": self.config.training.minutes,
            **evaluation,
            "seconds": round(time.perf_counter() - began, 1),
            "examples": [dataclasses.asdict(filling) for filling in examples],
        }
        self.run.write_results(results)
        return self.run.results()


def _say_nothing(line):
    pass
