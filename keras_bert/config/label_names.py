"""The names of a head's labels, as Hugging Face's config.json has them."""

from keras_bert.config.checks import require
from keras_bert.errors import UserError


def check_label_names(labels):
    """Raises `ValueError` unless these are names as text, each once."""
    require(all(isinstance(label, str) for label in labels), "labels", "names as text", labels)
    require(len(set(labels)) == len(labels), "labels", "names that differ", labels)


def label_fields(labels):
    """What config.json says of labels, in the order of the logits."""
    return {
        "id2label": {str(index): label for index, label in enumerate(labels)},
        "label2id": {label: index for index, label in enumerate(labels)},
        "num_labels": len(labels),
    }


def label_names(fields, num_labels, path):
    """Tuple of the names in a config's fields; where it has none, LABEL_0 and so on, as in transformers.

    Args:
        fields: the config's content.
        num_labels: how many logits the head in the file has.
        path: the config, for messages.

    Raises:
        UserError: the names are not those of so many labels.
    """
    names = fields.get("id2label") or {str(index): f"LABEL_{index}" for index in range(num_labels)}
    numbers = [str(index) for index in range(num_labels)]
    if not isinstance(names, dict) or set(names) != set(numbers):
        raise UserError(
            f"{path}: id2label needs a name for each of 0 to {num_labels - 1}, as the classifier's tensors have "
            f"{num_labels} rows. Received: {names!r}."
        )
    return tuple(str(names[number]) for number in numbers)
