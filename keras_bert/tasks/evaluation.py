"""A fine-tuned model over the examples of a task."""

import dataclasses
import functools

from keras_bert.checkpoints.model_folder import ModelFolder, open_model_folder
from keras_bert.config.finetuning import FinetuneConfig, InputConfig, TaskDataConfig
from keras_bert.data.batches.length_batches import every_row_once
from keras_bert.errors import UserError
from keras_bert.export.serving_function import serving_function
from keras_bert.files import exists, join
from keras_bert.inference.loading import load_folder
from keras_bert.program import PROGRAM
from keras_bert.tasks.examples.tables import known_format
from keras_bert.tasks.problems import open_problem
from keras_bert.tasks.question_answering.problem import N_BEST
from keras_bert.terminal_bar import terminal_bar
from keras_bert.training.outputs import all_outputs
from keras_bert.training.step import Step
from keras_bert.training.strategy import make_strategy


class Evaluator:
    """Computes a model's outputs for rows of any lengths.

    Args:
        problem: the `Problem`.
        model: its Keras model.
        pad_id: the id of [PAD].
        strategy: the `tf.distribute.Strategy` in whose scope the model was made.
        batch_size: rows at once.
    """

    def __init__(self, problem, model, pad_id, strategy, batch_size):
        self._problem = problem
        self._pad_id = pad_id
        self._strategy = strategy
        self._batch_size = batch_size
        self._step = Step(strategy, model, problem.objective)

    def __call__(self, split):
        """`{name: figure}` of a split that has labels: the objective's, and the scores."""
        answers, figures = self.answers(split)
        return {**figures, **self._problem.evaluate(split, answers)}

    def answers(self, split):
        """`(the problem's answers, {name: figure of the objective})` of a split."""
        outputs, figures = self._outputs(self._problem.rows(split))
        return self._problem.answers(split, outputs), figures

    def _outputs(self, rows):
        batches = every_row_once(rows, self._batch_size, self._pad_id)
        shown = terminal_bar(
            "Evaluating", "batches", int(batches.cardinality()), leave=False,
            over=self._strategy.experimental_distribute_dataset(batches),
        )  # fmt: skip
        return all_outputs(self._step, shown, self._problem.by_token)


class FinetunedModel:
    """A model that was fine-tuned here, with the task that its folder or its run tells.

    Args:
        model: a run folder or a model folder, or a `ModelFolder`.
        data: `{field of TaskDataConfig: value}` in place of what the run was trained on.
        task: another task that the model answers too (GLUE's ax for MNLI's); None for its own.
        batch_size: rows at once.
        asked: a file to be answered, in place of the task's splits; see `open_problem`.

    Attributes:
        config: the `FinetuneConfig`.
        problem: the task's problem.
        model: the Keras model.
        tokenizer: its `WordPieceTokenizer`.
        evaluate: the `Evaluator`.

    Raises:
        UserError: the folder does not say what its model was fine-tuned on, or the data do not fit.
    """

    def __init__(self, model, data=None, task=None, batch_size=32, asked=None):
        folder = model if isinstance(model, ModelFolder) else open_model_folder(model)
        self.config = finetune_config(folder.name, folder, data or {}, task)
        strategy = make_strategy("one")
        with strategy.scope():
            loaded = load_folder(folder)
        self._loaded = loaded
        self.model, self.tokenizer = loaded.model, loaded.tokenizer
        self.problem = open_problem(self.config, self.tokenizer, loaded.head, folder.task, asked)
        self.evaluate = Evaluator(self.problem, self.model, self.tokenizer.vocabulary.pad_id, strategy, batch_size)

    @functools.cached_property
    def serving_function(self):
        """The `ServingFunction` of the model: what its export answers."""
        return serving_function(self._loaded, n_best=N_BEST)


def splits_like(problem, name):
    """The split of this name, else those that begin so: `dev` is both of MNLI's. Raises `UserError` for none."""
    found = [split for split in problem.splits if split == name]
    found = found or [split for split in problem.splits if split.startswith(name)]
    if not found:
        raise UserError(f"split: needs one of {', '.join(problem.splits)}. Received: {name!r}.")
    return found


def finetune_config(path, folder, data, task=None):
    """The `FinetuneConfig` of a model: that of its run, or what its folder says of its task.

    Args:
        path: a run folder or a model folder.
        folder: its `ModelFolder`.
        data: `{field of TaskDataConfig: value}` that win.
        task: another task's name.
    """
    described = folder.task
    if not described:
        raise UserError(
            f"{path}: needs a model that was fine-tuned here on a task. Received: one whose config.json names none. "
            f"Fine-tune one with: {PROGRAM} finetune --task NAME --init MODEL"
        )
    config = _run_config(path)
    if config is None:
        config = FinetuneConfig(described["task"], data=_fields(TaskDataConfig, described))
    given = [file for name, file in data.items() if name in ("train", "dev", "test")]
    formats = {known_format(file, config.data.format) for file in given}
    if len(formats) == 1:  # A table of another kind than those of training.
        data = {"format": formats.pop(), **data}
    return dataclasses.replace(
        config,
        task=task or described["task"],
        input=_fields(InputConfig, described),
        data=dataclasses.replace(config.data, **data),
    )


def _run_config(path):
    """The config of the run that a folder is of, or None for a folder of a model alone."""
    file = join(path, "config.yaml")
    return FinetuneConfig.from_file(file) if exists(file) else None


def _fields(cls, values):
    names = {field.name for field in dataclasses.fields(cls)}
    return cls(**{name: value for name, value in values.items() if name in names and value is not None})
