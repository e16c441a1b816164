"""The task `text`: the user's own table with one or two texts per row."""

from collections.abc import Sequence
from dataclasses import replace

from keras_bert.config.finetuning import TaskDataConfig
from keras_bert.config.heads import MULTI_LABEL, PROBLEM_TYPES, REGRESSION, SINGLE_LABEL, ClassificationConfig
from keras_bert.errors import UserError
from keras_bert.tasks.classification.examples import with_labels
from keras_bert.tasks.task import Split, Task

_METRICS = {
    SINGLE_LABEL: ("accuracy", "macro_f1"),
    MULTI_LABEL: ("micro_f1", "macro_f1"),
    REGRESSION: ("pearson", "spearman"),
}


def text_task(
    texts: Sequence[str],
    label: str | None = None,
    *,
    train: str | None = None,
    dev: str | None = None,
    test: str | None = None,
    kind: str = SINGLE_LABEL,
    labels: Sequence[str] | None = None,
    separator: str = ",",
    format: str | None = None,
    columns: Sequence[str] | None = None,
    dev_share: float = 0.1,
) -> Task:
    """The task of a user's files, to be read with `load_examples(task, split)`.

    Without `dev`, a share of the training file is held out by the hash of each row's texts: the same rows in any order
    of the file, and equal texts on the same side. A test file needs no labels.

    Args:
        texts: the names of one or two columns.
        label: the name of the label's column; None if there are no labels to read.
        train, dev, test: tables, as for `read_table`; None if there is none.
        kind: one of `config.heads.PROBLEM_TYPES`.
        labels: the labels in order, as in a trained model; by default those found in the training file, sorted.
        separator: separates the labels in a cell, for multi-label tasks.
        format: of `config.corpus.TABLE_FORMATS`; None goes by each file's name and content.
        columns: the names of the columns, for files without a header.
        dev_share: the share held out.

    Raises:
        UserError: an argument or the training file is invalid; see `with_labels`.
    """
    _check(texts, label, train, dev, kind, labels, separator, dev_share)
    header = tuple(columns) if columns else None
    splits = {}
    if train:
        splits["train"] = Split((train,), header, side=None if dev else "train")
    if validation := dev or train:
        splits["dev"] = Split((validation,), header, side=None if dev else "dev")
    if test:
        splits["test"] = Split((test,), header, labelled=None if label else False)
    task = Task(
        name="text",
        kind=kind,
        texts=tuple(texts),
        label=label,
        splits=splits,
        metrics=_METRICS[kind],
        labels=tuple(labels) if labels else None,
        format=format,
        options="--text and --label",
        separator=separator,
        dev_share=dev_share,
    )
    return with_labels(task)


def _check(
    texts: Sequence[str],
    label: str | None,
    train: str | None,
    dev: str | None,
    kind: str,
    labels: Sequence[str] | None,
    separator: str,
    dev_share: float,
) -> None:
    if kind not in PROBLEM_TYPES:
        raise UserError(f"data.kind: needs one of {', '.join(PROBLEM_TYPES)}. Received: {kind!r}.")
    if len(texts) not in (1, 2) or len(set(texts)) != len(texts):
        raise UserError(
            f"data.texts (--text): needs the names of one or two columns. Received: {', '.join(texts) or 'none'}."
        )
    if label in texts:
        raise UserError(f"data.label (--label): needs another column than the text. Received: {label!r} for both.")
    if (train or dev) and not label:
        raise UserError(
            "data.label: needs the name of the column with the labels. Received: none. Give --label COLUMN."
        )
    if not (train or labels or kind == REGRESSION):
        raise UserError(
            "data.train: needs a training file, in which the labels are found. Received: none. Give --train."
        )
    if kind == MULTI_LABEL and not separator:
        raise UserError("data.separator: needs at least one character. Received: none.")
    if not 0.0 < dev_share < 1.0:
        raise UserError(f"data.dev_share: needs a share between 0 and 1. Received: {dev_share!r}.")


def own_table(data: TaskDataConfig, head: ClassificationConfig | None) -> Task:
    """The `text_task` of a recipe's data, with the labels of a trained model's head, if there is one.

    Files may call labels without names, LABEL_0 and so on, by their numbers.
    """
    task = text_task(
        data.texts,
        data.label or "label",
        train=data.train,
        dev=data.dev,
        test=data.test,
        kind=head.problem_type if head else data.kind,
        labels=head.labels if head and head.problem_type != REGRESSION else None,
        separator=data.separator,
        format=data.format,
        columns=data.columns or None,
        dev_share=data.dev_share,
    )
    unnamed = {str(index): label for index, label in enumerate(task.labels or ())}
    return replace(task, also_written=unnamed) if head and head.is_unnamed else task
