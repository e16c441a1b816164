"""Fine-tuning, whole: a BERT and a task → training → the best epoch by validation → model folder and results."""

import copy
import dataclasses
import math
import time

from keras_bert import extras, files
from keras_bert.checkpoints.model_writing import write_model_folder
from keras_bert.checkpoints.names import heads
from keras_bert.data.batches.length_batches import LengthBatches
from keras_bert.data.batches.static_shapes import choose_shapes
from keras_bert.errors import UserError
from keras_bert.models.first_values import set_first_values
from keras_bert.tasks.evaluation import Evaluator
from keras_bert.tasks.finetuning.frozen_features import FrozenFeatures
from keras_bert.tasks.finetuning.pictures import confusion_picture, loss_picture, write_pictures
from keras_bert.tasks.model_cards import finetuning_card
from keras_bert.tasks.phased_batches import PhasedBatches
from keras_bert.tasks.run_data import require_same_data
from keras_bert.training.engine import make_engine
from keras_bert.training.figures_table import Column
from keras_bert.training.loop import Loop
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.processes import (
    agreement,
    by_chief,
    chief_says,
    failing_together,
    process_number,
    require_same,
    settle,
)
from keras_bert.training.run_context import run_context
from keras_bert.training.strategy import check_divisible, describe

_MOST_SHAPES = 8
# A shape more is one compilation more, which takes as long as some tens of steps.
_STEPS_A_SHAPE = 60
_METRICS_SHOWN = 3
# So many at least, for a share of the time may hold hardly any: the first steps are compiled in it.
_WARMUP_STEPS_BY_THE_CLOCK = 100


class Finetuning:
    """One process of one fine-tuning run, from its settings to its model folder.

    Args:
        config: a `FinetuneConfig`.
        run: the `RunFolder`, which is settled here.
        problem: the `Problem` to learn.
        folder: the `ModelFolder` to begin from.
        tokenizer: its `WordPieceTokenizer`.
        strategy: the `tf.distribute.Strategy`.
        report: takes one line of text at a time.
        command: what was typed, for the model card; None where that is not known.
    """

    def __init__(self, config, run, problem, folder, tokenizer, strategy, report=print, command=None):
        self.config = config
        self.run = run
        self.problem = problem
        self.folder = folder
        self.tokenizer = tokenizer
        self.strategy = strategy
        self.command = command
        self.is_chief = process_number(strategy) == 0
        # The answers of the last validation, which are often the best one's: SQuAD's take minutes.
        self._validated = {}
        self.report = report if self.is_chief else lambda line: None
        check_divisible(config.training.batch_size, strategy, config.training.accumulation, "training.batch_size")
        settle(strategy, run, config, self.report)
        by_chief(strategy, lambda: require_same_data(run, problem))

    def finetune(self):
        """Trains, going on from the newest checkpoint; returns the results, which are also written.

        None in a process that is not the chief.
        """
        if chief_says(self.strategy, self._found_finished):
            return self.run.results() if self.is_chief else None
        began = time.perf_counter()
        self.build()
        done = self.restore()
        if self.config.features.kind:
            self.take_features()
        done = self.train(done)
        return self.write_results(done, began)

    def _found_finished(self):
        finished = self.run.results()
        if not finished or finished["lasts"] != self._lasts():
            return False
        self.report(f"{self.run.path} is finished: {finished['steps']:,} steps. --fresh starts over.")
        return True

    def _lasts(self):
        training = self.config.training
        return {key: getattr(training, key) for key in ("epochs", "steps", "minutes")}

    def build(self):
        """Makes every part of the run."""
        config, training, problem = self.config, self.config.training, self.problem
        self.report(describe(self.strategy))
        if not problem.dev_splits:
            raise UserError(
                f"{config.task}: needs dev examples, to choose the best epoch by. Received: none. Give --dev."
            )
        rows = problem.rows("train")
        # Before any training, so that a dev split that cannot be scored is not found out after it.
        self.baseline = {split: problem.baseline(split) for split in problem.dev_splits}
        pad_id = self.tokenizer.vocabulary.pad_id
        widths, group_sizes = choose_shapes(rows, self._most_shapes(rows))
        self.source = LengthBatches(rows, training.batch_size, training.seed, pad_id, widths, group_sizes=group_sizes)
        self.report(
            f"{len(rows):,} rows for training, {self.source.batches_per_epoch:,} batches of {training.batch_size} "
            f"an epoch, {self.source.padding_share:.1%} of their tokens padding."
        )
        self._steps_per_epoch = self.source.batches_per_epoch
        steps = training.steps or math.ceil(training.epochs * self._steps_per_epoch)

        def model(dtype):
            made = problem.make_model(self.folder.config, dtype)
            if training.freeze:
                made.encoder.trainable = False
            return made

        self.engine = make_engine(
            self.strategy, self.run, training, steps, [1.0], model, lambda budget: self._optimizer(steps, budget.share),
            problem.objective, config.optimizer.clip_norm,
        )  # fmt: skip
        self.model = self.engine.model
        self.evaluate = Evaluator(problem, self.model, pad_id, self.strategy, training.batch_size)
        self.batches = PhasedBatches(
            [self.source], self.engine.budget, self.strategy.experimental_distribute_dataset, training.steps_per_loop
        )

    def _optimizer(self, steps, share):
        settings = self.config.optimizer
        if settings.warmup_steps:
            return make_optimizer(settings, steps, share)
        if share is None:
            rise = settings.warmup_share * steps
        else:
            rise = min(settings.warmup_share * self._steps_per_epoch, _WARMUP_STEPS_BY_THE_CLOCK)
        risen = dataclasses.replace(settings, warmup_steps=round(rise))
        return make_optimizer(risen, steps, share, settings.warmup_share)

    def _most_shapes(self, rows):
        training = self.config.training
        if training.minutes:
            return _MOST_SHAPES
        steps = training.steps or training.epochs * len(rows) / training.batch_size
        return min(max(int(steps / _STEPS_A_SHAPE), 1), _MOST_SHAPES)

    def restore(self):
        """Takes the newest checkpoint, or the weights of `init`; returns the steps done."""
        return self.engine.start(self.run, self.config, self._begin, self.report)

    def _begin(self):
        config, lines = self.config, []
        with failing_together(agreement(self.strategy)):
            if not config.from_scratch:
                loaded = self.folder.load_into(self.model, new_parts=() if self._same_head() else heads())
                lines += [f"Beginning from the weights of {self.folder.name}.", *loaded.lines()]
            replaced = config.initialization
            set_first_values(self.model, replaced.as_initialization(), None, None, config.training.seed)
        lines += [f"{part}: replaced, {value}." for part, value in vars(replaced).items() if value]
        if lines:
            self.report("\n".join(lines))

    def _same_head(self):
        """Whether `init` was fine-tuned to answer just what is asked here: its head is a beginning then."""
        try:
            return self.folder.head == self.problem.head
        except UserError:  # It is not whole, and its encoder is what is wanted.
            return False

    def take_features(self):
        """Gives the rows the features of the encoder, whose weights are there now."""
        beside = files.join(files.parent(self.run.path), "features")
        features = FrozenFeatures(
            self.model, self.strategy, self.config.training.batch_size, self.tokenizer.vocabulary.pad_id,
            self.config.features.folder or beside, self.report,
        )  # fmt: skip
        features.give({split: self.problem.rows(split) for split in ("train", *self.problem.dev_splits)})

    def train(self, first_step):
        """Trains from `first_step` to the end; returns the steps done."""
        training, problem = self.config.training, self.problem
        split = problem.dev_splits[0]
        # A copy without the checks of settings, for the end of an epoch ends a loop wherever it falls.
        settings = copy.copy(training)
        settings.evaluate_every = training.evaluate_every or self._steps_per_epoch

        def batch():
            return "training.batch_size", training.batch_size

        def evaluate(done):
            answers, figures = self.evaluate.answers(split)
            self._validated = {(split, done): (answers, figures)}
            return {f"eval_{name}": value for name, value in {**figures, **problem.evaluate(split, answers)}.items()}

        def score(figures):
            return -figures[f"eval_{problem.main_metric}"]

        columns = [
            Column(name.replace("_", " ").rjust(8), name, _as_per_cent(problem.per_cent))
            for name in problem.metric_names[:_METRICS_SHOWN]
        ]
        budget = self.engine.budget
        with run_context(self.run, self.strategy, training, budget, first_step, batch, columns) as context:
            loop = Loop(self.engine, self.batches, evaluate, settings, context, score=score, is_enough=self._is_enough)
            loop.run(first_step)
        return loop.done

    def _is_enough(self):
        """Whether `patience` validations in a row brought nothing better, as the process says that writes the log."""
        patience = self.config.training.patience
        if not patience:
            return False
        own = self.is_chief and self._validations_since_best() >= patience
        return agreement(self.strategy)(own) > 0

    def _validations_since_best(self):
        """How many validations followed the best whose checkpoint stands; the newest may not be saved yet."""
        best = self.engine.checkpoints.best()
        if best is None:
            return 0
        step, score = best
        key = f"eval_{self.problem.main_metric}"
        lines = read_metrics(self.run.metrics_file)
        later = [line[key] for line in lines if key in line and line["step"] > step]
        is_better = later and later[-1] is not None and -later[-1] < score
        return 0 if is_better else len(later)

    def write_results(self, done, began):
        """Writes the model folder and results.json of the best validation, and pictures beside them.

        `began` is when the process did, by `time.perf_counter`. Returns the results; None where the chief has them.
        """
        problem = self.problem
        with failing_together(agreement(self.strategy)):
            best_step = self.engine.checkpoints.restore_best(self.report)
        require_same(self.strategy, self.run.path, best_checkpoint=best_step)
        results = {
            "task": self.config.task,
            "seed": self.config.training.seed,
            "main_metric": problem.main_metric,
            "per_cent": problem.per_cent,
            "steps": done,
            "best_step": best_step,
            "best_epoch": round(best_step / self._steps_per_epoch, 2),
            "lasts": self._lasts(),
            "splits": {},
            "counts": {},
            "baseline": {},
            "warnings": [],
        }
        confusions = {}
        for split in problem.dev_splits:
            answers, figures = self._validated.get((split, best_step)) or self.evaluate.answers(split)
            if split == problem.dev_splits[0]:
                problem.tune(split, answers)
            results["splits"][split] = {**figures, **problem.evaluate(split, answers)}
            results["counts"][split] = len(answers)
            results["baseline"][split] = self.baseline[split]
            results["warnings"] += problem.remarks(split, answers)
            confusion = problem.confusion(split, answers)
            if confusion is not None:
                results["splits"][split]["confusion"] = confusion.tolist()
                confusions[split] = confusion
        results["seconds"] = round(time.perf_counter() - began, 1)
        return by_chief(self.strategy, lambda: self._write(results, confusions, done))

    def _write(self, results, confusions, done):
        if extras.is_installed("matplotlib"):
            self._write_pictures(confusions, done)
        else:
            self.report("No pictures were drawn: matplotlib is missing. pip install 'bert-in-keras[plots]'")
        write_model_folder(
            self.run.model, self.model, self.tokenizer.vocabulary, **vars(self.folder.tokenizer),
            head=self.problem.head, task=self.problem.described(),
            card=finetuning_card(self.config, self.run.path, results, self.command),
        )  # fmt: skip
        self.run.write_results(results)
        for line in results["warnings"]:
            self.report(line)
        return results

    def _write_pictures(self, confusions, done):
        """The losses, and each split's confusion matrix."""
        labels = self.problem.head.labels if confusions else ()
        pictures = {
            f"confusion_{split}": confusion_picture(counts, labels, split) for split, counts in confusions.items()
        }
        pictures["loss"] = loss_picture({self.config.name: read_metrics(self.run.metrics_file)})
        write_pictures(self.run, pictures, done)


def _as_per_cent(is_already):
    """Function (score) -> text in per cent, as the table of results has it."""
    return lambda score: f"{score if is_already else 100 * score:.2f}"
