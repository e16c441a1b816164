"""All examples of a split of texts at once; the package reads them window by window."""

import dataclasses

import numpy as np

from keras_bert.tasks.classification.data import ExampleRows


@dataclasses.dataclass
class Examples:
    """One or two lists of texts; labels as from `LabelReader.array`, None if hidden; the numbers in a submission."""

    texts: list[list[str]]
    labels: np.ndarray | None
    indices: np.ndarray
    label_names: tuple[str, ...] | None
    origin: str
    warnings: tuple[str, ...]

    def __len__(self):
        return len(self.texts[0])


def load_examples(task, split, source=""):
    rows = ExampleRows(task, split, source)
    texts, labels, indices = zip(*rows)
    return Examples(
        texts=[list(column) for column in zip(*texts)],
        labels=None if labels[0] is None else rows.reader.array(labels),
        indices=np.asarray(indices, np.int64),
        label_names=task.labels,
        origin=rows.origin,
        warnings=tuple(rows.warnings()),
    )
