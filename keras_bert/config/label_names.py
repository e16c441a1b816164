"""The names of a head's labels, as in Hugging Face's config.json."""

from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert.config.checks import require
from keras_bert.errors import UserError


def check_label_names(labels: Sequence[str]) -> None:
    """Raises `ValueError` unless the labels are strings, all different."""
    require(all(isinstance(label, str) for label in labels), "labels", "names as text", labels)
    require(len(set(labels)) == len(labels), "labels", "names that differ", labels)


def label_fields(labels: Sequence[str]) -> dict[str, Any]:
    """The fields for config.json, of labels in the order of the logits."""
    return {
        "id2label": {str(index): label for index, label in enumerate(labels)},
        "label2id": {label: index for index, label in enumerate(labels)},
        "num_labels": len(labels),
    }


def label_names(fields: Mapping[str, Any], num_labels: int, path: str) -> tuple[str, ...]:
    """The names in config.json's fields; LABEL_0 and so on, as in transformers, if it has none.

    Args:
        fields: the content of config.json.
        num_labels: the number of logits of the head in the weights file.
        path: the config's path, for messages.

    Raises:
        UserError: the names are not one for each of `num_labels` labels.
    """
    names = fields.get("id2label") or {str(index): f"LABEL_{index}" for index in range(num_labels)}
    numbers = [str(index) for index in range(num_labels)]
    if not isinstance(names, dict) or set(names) != set(numbers):
        raise UserError(
            f"{path}: id2label needs a name for each of 0 to {num_labels - 1}, because the classifier's tensors have "
            f"{num_labels} rows. Received: {names!r}."
        )
    return tuple(str(names[number]) for number in numbers)
