"""The tensors in a model's file, found by the table of names and read one at a time."""

import numpy as np

from keras_bert.errors import UserError


class StoredTensors:
    """What the formats share; each adds how its file is opened and a value read.

    Attributes:
        path: the file, or the folder where there are several, for messages.
        places: `{name in the table: name in the file}`.
        others: names of tensors in the file that the table does not know.
    """

    column = None  # "huggingface" or "google": the table's column

    def __init__(self, path, places, others):
        self.path = path
        self.places = places
        self.others = others

    def shape(self, name_in_file):
        """The shape of a tensor, without reading it."""
        raise NotImplementedError

    def kind(self, name_in_file):
        """What numbers a tensor is of, as the format calls them."""
        raise NotImplementedError

    def value(self, name_in_file):
        """A tensor of floats as it lies in the file; None where it is of other numbers."""
        raise NotImplementedError

    def file_of(self, name_in_file):
        """The file that holds a tensor, for messages."""
        return self.path

    def holds(self, name):
        """Whether the tensor of a `TensorName` is there."""
        return bool(self._present(name))

    def stored_name(self, name):
        """How this format calls the tensor of a `TensorName`."""
        return getattr(name, self.column).name

    def read(self, name, shape=None):
        """The tensor of a `TensorName` as float32 in our orientation.

        Raises:
            UserError: it is not there, has not `shape`, is not of floats, or stands there twice and differs.
        """
        stored, present = getattr(name, self.column), self._present(name)
        if not present:
            raise UserError(f"{self.path}: needs the tensor {stored.name} and lacks it.")
        needed = shape[::-1] if stored.transposed and shape is not None else shape
        value = self._checked(present[0], needed)
        for again in present[1:]:
            if not np.array_equal(value, self._checked(again, needed)):
                raise UserError(
                    f"{self.file_of(again)}: needs {again} equal to {present[0]}, to which BERT ties it, "
                    "and it differs. Such a model is not supported."
                )
        return _transposed(value) if stored.transposed else value

    def unused(self, names):
        """Names in the file that belong to none of these `TensorName`s."""
        used = {place for name in names for place in self._present(name)}
        return sorted({*self.places.values(), *self.others} - used)

    def _present(self, name):
        stored = getattr(name, self.column)
        return [self.places[known] for known in (stored.name, *stored.also) if known in self.places]

    def _checked(self, name_in_file, needed):
        shape = tuple(self.shape(name_in_file))
        if needed is not None and shape != tuple(needed):
            raise UserError(
                f"{self.file_of(name_in_file)}: {name_in_file} needs shape {list(needed)} by the config. "
                f"Received: {list(shape)}."
            )
        value = self.value(name_in_file)
        if value is None:
            raise UserError(
                f"{self.file_of(name_in_file)}: {name_in_file} needs floating-point numbers. "
                f"Received: {self.kind(name_in_file)}. Quantised models are not supported."
            )
        return value.astype("float32", copy=False)


def _transposed(matrix, rows_at_a_time=64):
    """A transposed copy, made in blocks that fit the processor's cache: NumPy alone takes twice as long."""
    copy = np.empty(matrix.shape[::-1], matrix.dtype)
    for first in range(0, matrix.shape[0], rows_at_a_time):
        copy[:, first : first + rows_at_a_time] = matrix[first : first + rows_at_a_time].T
    return copy
