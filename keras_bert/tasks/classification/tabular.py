"""The task `text`: the user's own table of one or two texts a row."""

from keras_bert.config.heads import MULTI_LABEL, PROBLEM_TYPES, REGRESSION, SINGLE_LABEL
from keras_bert.errors import UserError
from keras_bert.tasks.classification.examples import with_labels
from keras_bert.tasks.task import Split, Task

_METRICS = {
    SINGLE_LABEL: ("accuracy", "macro_f1"),
    MULTI_LABEL: ("micro_f1", "macro_f1"),
    REGRESSION: ("pearson", "spearman"),
}


def text_task(
    texts,
    label=None,
    *,
    train=None,
    dev=None,
    test=None,
    kind=SINGLE_LABEL,
    labels=None,
    separator=",",
    format=None,
    columns=None,
    dev_share=0.1,
):
    """The `Task` of a user's files, to be read with `load_examples(task, split)`.

    Without `dev`, a share of the training file is held out by the hash of each row's texts: the same rows whatever
    their order, and equal texts on one side. A test file may do without labels.

    Args:
        texts: names of one or two columns.
        label: name of the label's column; None where there are no labels to read.
        train, dev, test: CSV, TSV or JSON-lines files, None for those that there are not.
        kind: one of `config.heads.PROBLEM_TYPES`.
        labels: the labels in their order (those of a trained model); found in the training file, sorted, if None.
        separator: what stands between the labels of a cell, for multi-label tasks.
        format: of `tasks.examples.tables.FORMATS`; judged by each file's name if None.
        columns: the columns' names, for files without a header.
        dev_share: the share held out.

    Raises:
        UserError: an option is wrong, or the training file is; see `with_labels`.
    """
    _check(texts, label, train, dev, kind, labels, separator, dev_share)
    columns = tuple(columns) if columns else None
    splits = {}
    if train:
        splits["train"] = Split((train,), columns, side=None if dev else "train")
    if dev or train:
        splits["dev"] = Split((dev or train,), columns, side=None if dev else "dev")
    if test:
        splits["test"] = Split((test,), columns, labelled=None if label else False)
    task = Task(
        name="text",
        kind=kind,
        texts=tuple(texts),
        label=label,
        splits=splits,
        metrics=_METRICS[kind],
        labels=tuple(labels) if labels else None,
        format=format,
        separator=separator,
        dev_share=dev_share,
    )
    return with_labels(task)


def _check(texts, label, train, dev, kind, labels, separator, dev_share):
    if kind not in PROBLEM_TYPES:
        raise UserError(f"kind: needs one of {', '.join(PROBLEM_TYPES)}. Received: {kind!r}.")
    if len(texts) not in (1, 2) or len(set(texts)) != len(texts):
        raise UserError(f"text: needs the names of one or two columns. Received: {', '.join(texts) or 'none'}.")
    if label in texts:
        raise UserError(f"label: needs another column than the text. Received: {label!r} for both.")
    if (train or dev) and not label:
        raise UserError("label: needs the name of the column with the labels. Received: none.")
    if not (train or labels or kind == REGRESSION):
        raise UserError("train: needs a training file, in which the labels are found. Received: none.")
    if kind == MULTI_LABEL and not separator:
        raise UserError("separator: needs a character or more. Received: none.")
    if not 0.0 < dev_share < 1.0:
        raise UserError(f"dev_share: needs a share between 0 and 1. Received: {dev_share!r}.")


def own_table(data, head):
    """`text_task` of a `TaskDataConfig`, with the labels of a trained model's `ClassificationConfig` or None."""
    return text_task(
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
