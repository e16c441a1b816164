"""Opens a fine-tuned model with its task and data, as its folder or run recorded them, and writes its answers."""

import dataclasses
import functools
import glob
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any

from keras_bert.checkpoints.model_folder import CONFIG, ModelFolder, open_model_folder
from keras_bert.config.features import TAGGING_TASKS
from keras_bert.config.finetuning import FinetuneConfig, InputConfig, Seq2SeqConfig, TaskDataConfig
from keras_bert.config.reading import FIELD, Config, read_own_field
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.program import PROGRAM
from keras_bert.core.terminal_bar import terminal_bar
from keras_bert.core.yaml_and_json import read_json, read_yaml
from keras_bert.data.corpus.text_lines import plain_ending
from keras_bert.data.tables.tables import is_data_set, known_format, source_files
from keras_bert.inference.loading import load_folder
from keras_bert.models.kind import with_article
from keras_bert.tasks.answer_files import FILE, FOLDER, STANDARD_STREAM, check_output, require_unread
from keras_bert.tasks.evaluator import Evaluator
from keras_bert.tasks.kind import kind_of_head, kind_of_task
from keras_bert.tasks.problem import Answers, Problem, open_problem, require_read
from keras_bert.tasks.run_data import data_changes
from keras_bert.tasks.sources import own_file
from keras_bert.tasks.task import INPUT
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.training.run_folder import GIVEN, given_name
from keras_bert.training.strategy import make_strategy

_FILES = ("train", "dev", "test")  # The fields of `TaskDataConfig` for the user's own files.


class FinetunedModel:
    """A fine-tuned model, with its task as recorded in its folder or run.

    A model that names no task, such as a classifier from the hub, is treated as one for the user's own files: its head
    gives the kind of task, its config.json the labels.

    Args:
        model: a run folder or a model folder.
        data: `{field of TaskDataConfig: value}` that override the run's.
        task: another task that the model can answer (such as ax for a model trained on mnli); None for its own.
        batch_size: rows per batch.
        asked: a file to answer instead of the task's splits; see `open_problem`.
        outputs: the paths to write, none of which may be read.
        n_best: how many texts to write per example, if the task writes texts; None for the recipe's number.

    Raises:
        UserError: the model has no head for a task, or the data does not fit it.
    """

    def __init__(
        self,
        model: str | ModelFolder,
        data: Mapping[str, Any] | None = None,
        task: str | None = None,
        batch_size: int = 32,
        asked: str | None = None,
        outputs: Iterable[str | None] = (),
        n_best: int | None = None,
    ):
        folder = model if isinstance(model, ModelFolder) else open_model_folder(model)
        self.folder = folder = folder if "task" in folder.task else _as_own_task(folder, task)
        self._given = {name for name, value in (data or {}).items() if value}
        self.config = finetune_config(folder.name, folder, data or {}, task, asked)
        if n_best:
            self.config = _with_n_best(self.config, n_best)
        own = self.config.data
        require_unread(outputs, [folder.path, *([asked] if asked else [own.folder, own.train, own.dev, own.test])])
        for split in self._given.intersection(_FILES):  # Before the weights are fetched.
            own_file(getattr(own, split), split, self.config.task)
        strategy = make_strategy("one")
        with strategy.scope():
            loaded = load_folder(folder)
        self.model, self.tokenizer = loaded.model, loaded.tokenizer
        self.problem = open_problem(self.config, self.tokenizer, loaded.head, folder.task, asked)
        self._asked = asked
        evaluator = functools.partial(
            Evaluator, self.problem, self.model, self.tokenizer.vocabulary.pad_id, strategy, batch_size
        )
        self.evaluate, self._of_windows = evaluator(), evaluator(unlabelled=True)

    def answers_to(self, window: Sized, progress: Callable[[float], object] | None = None) -> Answers:
        """The answers to the examples of one of `Problem.windows`; `progress` as for `Evaluator.outputs`."""
        if not len(window):  # In a file of words, a window of nothing but empty lines.
            return []
        layout = self.problem.lay_out([window])
        outputs, _ = self._of_windows.outputs(layout.rows, progress)
        return self.problem.answers_of(layout, outputs)

    def split_files(self, split: str) -> list[str]:
        """The user's own files that a split is read from; [] for a benchmark's split."""
        own = self.config.data
        source = {INPUT: self._asked, "train": own.train, "dev": own.dev, "test": own.test}.get(split)
        return source_files(source) if source else []

    def data_changes(self, splits: Iterable[str]) -> list[str]:
        """Says which splits have changed since the model's run read them."""
        return data_changes(_run_folder(self.folder.name), self.problem, splits)

    def splits(self, name: str) -> list[str]:
        """`splits_like` of the task.

        Raises:
            UserError: there is none, the run recorded its file by a relative path that leads nowhere now, or columns
                were given but the split is STS-B's.
        """
        found, kind = splits_like(self.problem, name), kind_of_task(self.config.task)
        for split in found:
            is_own = not kind.trains_vectors or getattr(self.config.data, split)
            if not is_own and self._given & {"texts", "label", "format"}:
                raise UserError(
                    f"--text, --label, --format: need a table of your own, as --{split}. Received: none, so that "
                    "STS-B's columns are read. Leave them out."
                )
            own = {setting: getattr(self.config.data, setting, None) for setting in (split, "folder", "train")}
            setting, path = next(((setting, path) for setting, path in own.items() if path), ("folder", ""))
            if setting in self._given or not path or is_data_set(path) or glob.has_magic(path):
                continue
            if not (files.is_remote(path) or os.path.isabs(path) or files.exists(path)):
                raise UserError(
                    f"{path}: needs the split {split!r} where the run of {self.folder.name} recorded it, relative to "
                    f"the folder that the run was started in. Received: no such path in {os.getcwd()}. Go to that "
                    f"folder, or give {'--data-dir' if setting == 'folder' else f'--{setting}'}."
                )
        return found


def splits_like(problem: Problem, name: str) -> list[str]:
    """The split of this name, or else all that start with it (`dev`: both of MNLI's). Raises `UserError` for none."""
    found = [split for split in problem.splits if split == name]
    found = found or [split for split in problem.splits if name and split.startswith(name)]
    if not problem.splits:
        raise UserError(
            "split: needs a file of examples. Received: a model that names none. Give --train, --dev or --test."
        )
    if not found:
        raise UserError(f"split: needs one of {', '.join(problem.splits)}. Received: {name!r}.")
    return found


def finetune_config(
    path: str, folder: ModelFolder, data: Mapping[str, Any], task: str | None = None, asked: str | None = None
) -> FinetuneConfig:
    """The recipe of a fine-tuned model, from its run or else from its folder's task record.

    Args:
        path: a run folder or a model folder.
        data: `{field of TaskDataConfig: value}` that take precedence.
        task: another task's name; None for the model's own.
        asked: a file to answer, or None.
    """
    task_record = folder.task
    config = _run_config(path) or FinetuneConfig(task_record["task"], data=_settings(TaskDataConfig, folder))
    task = task or task_record["task"]
    require_read(task, data)
    compares_vectors = kind_of_task(task).trains_vectors
    if compares_vectors and len(data.get("texts") or ()) == 1:  # The default column, which stands for STS-B's.
        raise UserError(f"text: needs the names of two columns, one for each text. Received: {data['texts'][0]}.")
    if data.get("texts") and task in TAGGING_TASKS:  # Overrides the word column of training.
        data = {"word": data["texts"][0], **data}
    given = [file for name, file in data.items() if name in _FILES and file]
    formats = {known_format(file, config.data.format) for file in given}
    if asked:
        is_plain = asked == STANDARD_STREAM or plain_ending(asked) == ".txt"
        formats = {None if is_plain else known_format(asked, config.data.format)}
    if len(formats) == 1:  # The file may have another format than the training file.
        data = {"format": formats.pop(), **data}
    if data.get("folder") and not given:  # It replaces the files that the run recorded.
        # For vectors, the folder has STS-B's pairs to judge by; the run's own training pairs stay.
        data = {**dict.fromkeys(_FILES[1:] if compares_vectors else _FILES), **data}
    return dataclasses.replace(
        config,
        task=task,
        input=_settings(InputConfig, folder),
        seq2seq=_settings(Seq2SeqConfig, folder),
        data=dataclasses.replace(config.data, **data),
    )


def _with_n_best(config: FinetuneConfig, count: int) -> FinetuneConfig:
    """The recipe with this `n_best`, and at least as many beams. Raises `UserError` if its task writes no texts."""
    if not kind_of_task(config.task).writes_texts:
        raise UserError(f"--n-best: needs a model that writes texts. Received: one for {config.task}. Leave it out.")
    beams = max(config.seq2seq.beams, count)
    return dataclasses.replace(config, seq2seq=dataclasses.replace(config.seq2seq, n_best=count, beams=beams))


def _as_own_task(folder: ModelFolder, task: str | None) -> ModelFolder:
    """The folder of a model that names no task, with `task` as its task or else the task for the user's own files.

    Raises `UserError` if it has no head for a task.
    """
    head = folder.head
    task = task or (kind_of_head(head).own_task if head else None)
    if not head or not task:
        received = f"{with_article(head.architecture)} that names no task" if head else "one without a task's head"
        raise UserError(
            f"{folder.name}: needs a fine-tuned model. Received: {received}. "
            f"Fine-tune one with: {PROGRAM} finetune --task NAME --init MODEL"
        )
    texts = {"texts": ["text_a", "text_b"]} if folder.reading.pair else {}
    if labels := kind_of_head(head).unnamed_labels(head):
        note = f"{folder.path}: its config.json has no names for the labels {labels[0]} to {labels[-1]} (id2label)."
        folder = dataclasses.replace(folder, notes=[*folder.notes, note])
    length = folder.reading.max_length
    special_tokens = Vocabulary.from_file(folder.vocabulary_file).row_pattern.special_tokens(2)
    # As in the export; affects only small models.
    question = min(InputConfig.max_question_length, length - special_tokens - 1)
    record = {**folder.task, "task": task, "max_length": length, "max_question_length": question, **texts}
    return dataclasses.replace(folder, other_fields={**folder.other_fields, FIELD: record})


def _run_folder(path: str) -> str:
    """The folder of a run with its recipe: the best seed's if there are several."""
    results = files.join(path, "results.json")
    if files.exists(files.join(path, "config.yaml")) or not files.exists(results):
        return path
    return files.join(path, f"seed-{read_json(results).get('best_seed')}")


def _run_config(path: str) -> FinetuneConfig | None:
    """The fine-tuning recipe in a run folder, the best seed's if there are several; None without one."""
    file = files.join(_run_folder(path), "config.yaml")
    # A pretrained encoder-decoder answers too, and its run has a pretraining recipe.
    if not (files.exists(file) and "task" in read_yaml(file)):
        return None
    config = FinetuneConfig.from_file(file)
    return dataclasses.replace(config, data=dataclasses.replace(config.data, **_given_data(config.data, path)))


def _given_data(recorded: TaskDataConfig, run: str) -> dict[str, Any]:
    """`{field: path}` of the examples that were given as objects, even if the run's folder has moved."""
    found = {}
    for split in _FILES:
        name = str(given_name(getattr(recorded, split)))
        # With several seeds, they are beside the seeds' folders.
        here = filter(files.exists, (files.join(home, name) for home in (run, files.parent(run))))
        if name.startswith(f"{GIVEN}/") and (path := next(here, None)):
            found[split] = path
    return found


def _settings(cls: type[Config], folder: ModelFolder) -> Config:
    """The settings of a class in config.json's field `keras_bert`, whose other keys are ignored."""
    label = folder.task.get("label")  # A column's number is text in recipes.
    fields = {FIELD: {**folder.task, "label": str(label)}} if isinstance(label, int) else folder.other_fields
    return read_own_field(cls, fields, files.join(folder.path, CONFIG))


def predict(model: FinetunedModel, splits: Iterable[str], output: str) -> tuple[list[str], int]:
    """Writes the answers to some splits, in the format of the kind of task.

    At most a few thousand examples are in memory. Files appear when they are complete; stdout is written as the answers
    are computed.

    Args:
        output: a file, "-" for stdout, or a folder if the answers have file names of their own. With several splits, a
            folder that gets a file or folder for each.

    Returns: (the paths written, how many examples, questions or sentences were answered).

    Raises:
        UserError: the output cannot be written (checked before anything is computed); or the examples cannot be read
            to their end or an answer is not finite (no file is written).
    """
    problem, places, done = model.problem, _places(model.problem, list(splits), output), 0
    for split, place in places.items():
        with (
            problem.writing(split, place) as write,
            terminal_bar("Answered", "examples", leave=False, read=model.split_files(split)) as bar,
        ):
            for window in problem.windows(split):
                write(window, model.answers_to(window, functools.partial(bar.partly, n=len(window))))
                done += len(window)
                bar.update(len(window))
    return list(dict.fromkeys(places.values())), done


def _places(problem: Problem, splits: Sequence[str], output: str) -> dict[str, str]:
    """`{split: where its answers are written}`. Raises `UserError` if that cannot be written."""
    if len(splits) == 1:
        check_output(output, problem.output_kind(splits[0]))
        return {splits[0]: output}
    check_output(output, FOLDER)
    return {
        split: files.join(output, f"{split}{problem.answers_ending}" if problem.output_kind(split) == FILE else split)
        for split in splits
    }
