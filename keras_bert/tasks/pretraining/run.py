"""A whole pretraining run: text → vocabulary → shards → training → validation → model folder."""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_bert.checkpoints.hub import is_hub_name, names_commit
from keras_bert.checkpoints.model_folder import ModelFolder, open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.initialization import InitializationConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core import files, messages
from keras_bert.core.runtime import all_cores
from keras_bert.models.bert.config import DECODED, MASKED, PERMUTED, REPLACED, BertConfig
from keras_bert.models.term import term_named
from keras_bert.tasks.model_cards import pretraining_card
from keras_bert.tasks.phased_batches import PhasedBatches
from keras_bert.tasks.pretraining.batch_sources import BatchSources, open_batch_sources
from keras_bert.tasks.pretraining.engine import (
    generator_of,
    make_objective,
    phase_flops,
    phase_predictions,
    pretraining_engine,
    tokens_read,
)
from keras_bert.tasks.pretraining.initialization import TextStatistics, initialize, start_from, text_statistics
from keras_bert.tasks.pretraining.run_text import keep_record, require_outside, require_reachable, require_run_text
from keras_bert.tasks.pretraining.teacher import PretrainingTeacher
from keras_bert.tasks.pretraining.views import fillings_panel, require_examples, tried_examples, write_embeddings
from keras_bert.tasks.run_data import TEACHER, require_same_model
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.training.accumulation import BatchShape, Companion, choose_accumulation
from keras_bert.training.cluster import explained_lost_worker
from keras_bert.training.device_integers import distribute_to_steps
from keras_bert.training.loop import Loop
from keras_bert.training.metrics import Column, MetricSums, perplexity
from keras_bert.training.processes import (
    agreement,
    by_chief,
    chief_decides,
    claim,
    fail_together,
    process_count,
    process_number,
)
from keras_bert.training.processor import advise, share_cores, with_precision
from keras_bert.training.profiling import matmul_peak, profiled
from keras_bert.training.rollbacks import SkippedBatches
from keras_bert.training.run_context import run_context
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.run_loggers import require_loggers
from keras_bert.training.step import Batch, Step
from keras_bert.training.step_loop import LoopBatches
from keras_bert.training.strategy import check_divisible, describe, graphs_as_traced, is_one_cpu, make_strategy

_log = logging.getLogger(__name__)

_MOST_KEPT = 2**28  # Bytes of rows to validate on: 2,048 of 512 tokens take 20 million.
_LONG_RUN = 30.0  # Days. The paper's BERT-base takes 4 on its TPUs, and years on a CPU.


@explained_lost_worker()
def pretrain(
    config: PretrainConfig,
    run: RunFolder,
    command: str | None = None,
    started_at: float | None = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
) -> dict[str, Any] | None:
    """Trains by a recipe, resuming from the newest checkpoint, and writes the model folder and results.json.

    Args:
        command: the command line, for the model card; None if unknown.
        started_at: when the command began, from `time.monotonic`; None for now.
        callbacks: see `training.callbacks.Callbacks`.

    Returns: the results; None in processes other than the chief.

    Raises:
        UserError: something in the recipe, the data or the folder cannot be used.
        RunStopped: on request, or because another process of the run is gone.
    """
    started_at = time.monotonic() if started_at is None else started_at
    with run:
        pretraining = Pretraining(config, run)
        if pretraining.is_finished():
            return run.results() if pretraining.is_chief else None
        with graphs_as_traced(pretraining.strategy):
            pretraining.build()
            first_step = pretraining.restore()
            done, evaluation = pretraining.train(first_step, started_at, callbacks)
            # The others wait: TensorFlow treats a worker that leaves as lost, and kills the chief while it is writing.
            with pretraining.engine.averaged_weights():
                return by_chief(
                    pretraining.strategy, lambda: pretraining.write_results(done, evaluation, started_at, command)
                )


class Pretraining:
    """One process of a pretraining run, from its settings to its model folder.

    Args:
        run: the run's folder, which is claimed here.

    Attributes:
        worker: this process's number in the run.
        is_chief: whether this process writes the run's files.
        teacher: the model to learn from; None for none.
        sources, tokenizer, engine, batches: the parts of the run, made by `build`.
    """

    def __init__(self, config: PretrainConfig, run: RunFolder):
        config = dataclasses.replace(config, training=with_precision(config.training, run))
        if config.init:
            config = dataclasses.replace(config, init=run.begun_init(config.init))
        self.config = config
        if config.init and is_hub_name(config.init) and not names_commit(config.init):  # Recorded with its commit.
            self.config = config = dataclasses.replace(config, init=self._init.name)
        self.teacher = PretrainingTeacher(config) if config.teacher.weight and config.teacher.model else None
        if self.teacher:
            taught = dataclasses.replace(config.teacher, model=self.teacher.folder.name)
            self.config = config = dataclasses.replace(config, teacher=taught)
        self.run = run
        require_reachable(run, config)
        require_outside(run, config)
        require_loggers(config.training)
        share_cores(config.training, self._parallel(config.training.slices))
        self.strategy = make_strategy(config.training.strategy, config.training.devices, config.training.tpu)
        self.worker = process_number(self.strategy)
        self.is_chief = self.worker == 0
        if not self.is_chief:
            messages.mute()
        for index, phase in enumerate(config.phases):
            check_divisible(phase.batch_size, self.strategy, config.training.slices, f"phases.{index}.batch_size")
        claim(self.strategy, run, config)
        by_chief(self.strategy, lambda: require_run_text(run, config))
        if teacher := self.teacher:
            by_chief(self.strategy, lambda: require_same_model(run, TEACHER, teacher.folder))

    @functools.cached_property
    def _init(self) -> ModelFolder:
        """The model in `init`, which a resumed run does not open."""
        assert self.config.init is not None
        return open_model_folder(self.config.init)

    def _perplexity(self, figures: Mapping[str, float], prefix: str = "") -> dict[str, float]:
        """The perplexity of masked or next tokens, by their loss among the figures; {} if none are predicted."""
        first = self.config.objective.trained[0]
        nats = figures[f"{prefix}{first.name}_loss"]
        return {f"{prefix}perplexity": perplexity(nats)} if first.predicts_tokens else {}

    def is_finished(self) -> bool:
        """Whether the run is finished already, according to its chief."""
        return chief_decides(self.strategy, self._found_finished)

    def _found_finished(self) -> bool:
        results, training = self.run.results(), self.config.training
        # Results of older versions do not have `minutes`; those runs were measured in steps.
        if not results or results.get("minutes", 0.0) != training.minutes:
            return False
        # A callback may have ended the run before its last step; older versions do not say which that was.
        if not training.minutes and results.get("planned_steps", results["steps"]) != training.steps:
            return False
        more = "--minutes" if training.minutes else "--steps"
        _log.info(
            f"{self.run.path} is finished: {results['steps']} steps. {more} N trains longer, --fresh starts over."
        )
        return True

    def build(self) -> None:
        """Makes the run's data, if missing, and every part of the run."""
        config = self.config
        _log.info(describe(self.strategy))
        if not self.run.has_begun():
            advise(self.strategy, config.training)

        def sources() -> BatchSources:
            return open_batch_sources(config, self.run.data, self.worker, self.run.has_begun())

        def made_by_chief() -> BatchSources:
            found = sources()
            keep_record(self.run, config)
            return found

        made = by_chief(self.strategy, made_by_chief)  # The other processes then find the data.
        with fail_together(agreement(self.strategy)):
            self.sources = made or sources()
        self.tokenizer = self.sources.tokenizer
        require_examples(config.examples, config.model, self.tokenizer)
        vocabulary = self.tokenizer.vocabulary
        self.config = config = self._with_slices(dataclasses.replace(config.model, vocab_size=len(vocabulary)))
        if self.teacher:
            self.teacher.require_vocabulary(self.tokenizer)
        self.engine = pretraining_engine(config, self.run, self.strategy, vocabulary, self.teacher)
        _log.info(f"The model has {self.engine.model.count_params():,} parameters.")

        self.batches = PhasedBatches(
            self.sources.training, self.engine.budget, self.distribute, config.training.steps_per_loop
        )
        measured = make_objective(config, vocabulary, self.sources.unigram_nats)
        self._evaluation_step = Step(self.strategy, self.engine.model, measured)
        # So that their graphs are built once, not for every validation.
        self.held_out = functools.cache(self._held_out)
        self._validation_batches = functools.cache(self._batches_to_validate_on)

    def _with_slices(self, model: BertConfig) -> PretrainConfig:
        """The recipe with a number for `training.accumulation`, and `parallel_slices` that divide its batches.

        A collective.
        """
        config, memory = self.config, self.config.objective.memory_length
        shapes = [
            BatchShape(
                phase.batch_size,
                phase.sequence_length + memory,
                phase_predictions(config, index),
                read=tokens_read(config, index, model) + memory,
            )
            for index, phase in enumerate(config.phases)
        ]
        generator = generator_of(config, model)
        companions = [Companion(generator, is_trained=True)] if generator else []
        if self.teacher:
            compares_logits = self.teacher.mapped_size is None
            companions.append(Companion(self.teacher.folder.config, is_trained=False, predicts=compares_logits))
        slices = choose_accumulation(config.training, self.run, self.strategy, model, shapes, companions=companions)
        parallel = self._parallel(slices) if is_one_cpu(self.strategy) else 1
        training = dataclasses.replace(config.training, accumulation=slices, parallel_slices=parallel)
        return dataclasses.replace(config, training=training)

    def _parallel(self, slices: int) -> int:
        """How many parts of each of `slices` one CPU computes side by side: at most a core each, and of equal size."""
        most = min(self.config.training.parallel_slices, all_cores())
        return math.gcd(most, *(phase.batch_size // slices for phase in self.config.phases))

    def distribute(self, dataset: tf.data.Dataset) -> tf.distribute.DistributedDataset:
        """The data set, spread over the replicas."""
        return distribute_to_steps(self.strategy, dataset)

    def restore(self) -> int:
        """Restores the newest checkpoint or, without one, calls `begin`; returns the steps done."""
        return self.engine.start(self.run, self.config, self.begin)

    def begin(self) -> None:
        """Sets the initial weights: from `init`, then by `initialization`, which with `init` needs `replaces`."""
        config = self.config
        is_used = not config.init or config.initialization.replaces
        needs_text = is_used and config.initialization.needs_text

        def statistics() -> TextStatistics:
            return text_statistics(config, self.sources, self.run.data)

        made = by_chief(self.strategy, statistics) if needs_text else None  # The other processes then read the file.
        with fail_together(agreement(self.strategy)):
            if config.init:
                start_from(self.engine.model, self._init, self.tokenizer.vocabulary)
                if not is_used and config.initialization != InitializationConfig():
                    _log.info("The recipe's initialization is not used, because the run starts from a model.")
            if is_used:
                initialize(self.engine.model, config, (made or statistics()) if needs_text else None)

    def evaluate(self, phase: int) -> dict[str, float]:
        """The figures `eval_…` on the held-out documents, in rows of a phase."""
        sums = MetricSums(self._evaluation_step.objective.terms)
        for batch in self._validation_batches(phase):
            sums.add(self._evaluation_step.evaluate(batch))
        figures = {f"eval_{name}": value for name, value in sums.take().items()}
        return {**figures, **self._perplexity(figures, "eval_")}

    def _held_out(self, phase: int) -> tf.data.Dataset:
        """The batches to validate on, in rows of a phase.

        Unless they are too many, they stay in memory after the first validation, for the next ones.
        """
        batch_size = self.config.phases[phase].batch_size
        wanted = -(-self.config.training.evaluation_examples // batch_size)
        batches = self.sources.validation[phase].all_batches().take(wanted)
        specs = batches.element_spec.values()
        is_known = all(spec.shape.is_fully_defined() for spec in specs)
        if is_known and wanted * sum(spec.dtype.size * spec.shape.num_elements() for spec in specs) <= _MOST_KEPT:
            batches = batches.cache()
        return batches

    def _batches_to_validate_on(self, phase: int) -> tf.distribute.DistributedDataset:
        """The rows of `held_out`, in batches of the size of a training slice: a whole batch may not fit in memory."""
        size = self.config.phases[phase].batch_size // self.config.training.slices
        return self.distribute(self.held_out(phase).rebatch(size, drop_remainder=True))

    def choose_compilation(self, done: int) -> None:
        """Compiles the step, or does not, for `training.jit_compile: auto`."""
        loop = self.config.training.steps_per_loop
        self.engine = self.engine.with_compilation(done, self.batches.sample, loop)

    def train(
        self, first_step: int, started_at: float | None = None, callbacks: Iterable[keras.callbacks.Callback] = ()
    ) -> tuple[int, dict[str, float]]:
        """Trains from `first_step` to the end; returns the steps done and the last validation figures.

        `started_at` is when the command began, from which `training.max_minutes` counts; see `StopRequest`.
        """
        training = self.config.training
        loop: Loop | None = None

        def batch_key() -> tuple[str, int]:
            # Memory may also run out before the loop is made.
            phase = self._phase_of((first_step if loop is None else loop.done) + 1)
            return f"phases.{phase}.batch_size", self.config.phases[phase].batch_size

        columns = _columns(self.config.objective.terms)
        at_mask = dict.fromkeys((MASKED, REPLACED), "at [MASK]")
        of_others = {**at_mask, PERMUTED: "of permuted tokens", DECODED: "of the decoder"}
        where = of_others.get(self.config.model.predicts, "of next tokens")
        charts = {f"loss {where} and the unigram's (nats)": "(mask|text)_token_loss", "perplexity": "perplexity"}
        with run_context(
            self.run, self.strategy, training, first_step, batch_key, charts, columns, started_at, callbacks
        ) as context:
            self.goodput = context.goodput
            self.choose_compilation(first_step)
            engine, peak = self.engine, self.matmul_peak()
            self._note_long_run(first_step, peak)
            is_viewed, vocabulary = self.is_chief and "tensorboard" in training.log_to, self.tokenizer.vocabulary

            @functools.cache
            def shown(phase: int) -> Mapping[str, Any]:
                return next(self.held_out(phase).take(1).as_numpy_iterator())

            def batches(step: int, skipped: Sequence[SkippedBatches]) -> Generator[Batch | LoopBatches, None, None]:
                found = self.batches(step, skipped)
                if not (self.is_chief and training.profile_at):
                    return found
                return profiled(found, step, training.profile_at, files.join(self.run.tensorboard, "training"))

            def evaluate(done: int) -> dict[str, float]:
                phase = self._phase_of(done)
                figures = self.evaluate(phase)
                # After the validation, which keeps its batches: reading only the first keeps none.
                if is_viewed and self.config.model.predicts == MASKED:
                    context.log.table(done, "fillings", fillings_panel(engine.model, vocabulary, shown(phase)))
                return figures

            def derive(done: int, figures: dict[str, float]) -> dict[str, float]:
                speed = self._flops(self._phase_of(done)) * figures["examples_per_second"]
                return {**self._perplexity(figures), "flops_utilization": speed / peak}

            loop = Loop(engine, batches, evaluate, training, context, derive)
            evaluation = loop.run(first_step)
            with engine.averaged_weights():
                if is_viewed:
                    table = engine.model.encoder.embeddings.word_embeddings.numpy()
                    folder = files.join(self.run.tensorboard, "validation")
                    write_embeddings(folder, "word_embeddings", table, vocabulary.tokens)
        return loop.done, evaluation

    def _flops(self, phase: int) -> int:
        teacher = self.teacher.folder.config if self.teacher else None
        return phase_flops(self.config, phase, self.engine.model.config, teacher)

    def matmul_peak(self) -> float:
        """FLOP/s of a matrix product on all devices of the run."""
        dtype = self.config.training.precision
        peak = matmul_peak(self.strategy, dtype) * process_count(self.strategy)
        _log.info(f"Peak speed of a matrix product in {dtype}: {peak / 1e9:,.0f} GFLOP/s.")
        return peak

    def _note_long_run(self, first_step: int, peak: float) -> None:
        """Warns before the first step, which may take minutes, if even at `peak` FLOP/s the run lasts too long."""
        config = self.config
        if config.training.minutes:
            return
        parts = self.engine.budget.phase_slices(first_step, config.training.steps)
        flops = sum(part.steps * config.phases[part.phase].batch_size * self._flops(part.phase) for part in parts)
        if (days := flops / peak / 86_400) > _LONG_RUN:
            _log.info(
                f"At that speed this run takes at least {days:,.0f} days. Smaller recipes are five_minutes, wiki_mini "
                "and two_hours (--config)."
            )

    def _phase_of(self, done: int) -> int:
        """The phase of the last of `done` steps."""
        phase = self.engine.budget.phase(max(done - 1, 0))
        return len(self.config.phases) - 1 if phase is None else phase

    def write_results(
        self, done: int, evaluation: Mapping[str, float], started_at: float, command: str | None = None
    ) -> dict[str, Any] | None:
        """Writes the model folder and results.json, and returns the results.

        Args:
            evaluation: the last validation figures.
            started_at: when the command began, from `time.monotonic`.
            command: the command line, for the model card.
        """
        write_model_folder(
            self.run.model,
            self.engine.model,
            self.tokenizer.vocabulary,
            **vars(TokenizerSettings(self.tokenizer.lower_case, prefix_space=self.tokenizer.prefix_space)),
            card=pretraining_card(self.config, self.run.path, done, evaluation, command),
        )
        results = {
            "steps": done,
            "planned_steps": self.config.training.steps,
            "minutes": self.config.training.minutes,
            **evaluation,
            "seconds": round(time.monotonic() - started_at, 1),
            "goodput": self.goodput.summary(),
            "examples": [
                dataclasses.asdict(example)
                for example in tried_examples(self.config.examples, self.engine.model, self.tokenizer)
            ],
        }
        self.run.write_results(results)
        return self.run.results()


def _columns(terms: Iterable[str]) -> list[Column]:
    """The columns of the table: the perplexity if tokens are predicted, and the accuracy of each term of the loss."""
    found = [term_named(name) for name in terms]
    perplexities = [Column("perplexity", "perplexity", "{:,.1f}".format)] if found[0].predicts_tokens else []
    accuracies = (Column(term.heading, f"{term.name}_accuracy", "{:.1%}".format) for term in found)
    return [*perplexities, *accuracies]
