"""The tensors in a model's file, looked up in the table of names and read one at a time."""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from keras_bert.core.errors import UserError
from keras_bert.models.tensor_names import StoredName, TensorName


class StoredTensors:
    """The base of both formats; a subclass opens its file and reads the values.

    Attributes:
        column: the format's column in the table, "huggingface" or "google".
        path: the file, or the folder if there are several, for messages.
        places: `{name in the table: name in the file}`.
        others: names of tensors in the file that the table lacks.
    """

    column: ClassVar[str]

    def __init__(self, path: str, places: Mapping[str, str], others: Collection[str]) -> None:
        self.path = path
        self.places = places
        self.others = others

    def holder(self, name_in_file: str) -> Any:
        """What has a tensor's `shape`, `kind` and `value`, for a class that does not read them itself."""
        raise NotImplementedError

    def shape(self, name_in_file: str) -> tuple[int, ...]:
        """The shape of a tensor, without reading it."""
        return self.holder(name_in_file).shape(name_in_file)

    def kind(self, name_in_file: str) -> str:
        """The data type of a tensor, as the format calls it."""
        return self.holder(name_in_file).kind(name_in_file)

    def value(self, name_in_file: str) -> np.ndarray | None:
        """A floating-point tensor as stored in the file; None for other types."""
        return self.holder(name_in_file).value(name_in_file)

    def file_of(self, name_in_file: str) -> str:
        """The file that holds a tensor, for messages."""
        return self.path

    def holds(self, name: TensorName) -> bool:
        """Whether the file has this tensor."""
        return bool(self._present(name))

    def stored_name(self, name: TensorName) -> str:
        """The name of this tensor in this format."""
        return self._stored(name).name

    def read(self, name: TensorName, shape: tuple[int, ...] | None = None) -> npt.NDArray[np.float32]:
        """The tensor in our orientation.

        Raises:
            UserError: it is missing, does not have `shape`, is not floating-point, or is stored twice and differs.
        """
        stored, present = self._stored(name), self._present(name)
        if not present:
            raise UserError(f"{self.path}: needs the tensor {stored.name} and lacks it.")
        needed = shape[::-1] if stored.transposed and shape is not None else shape
        value = self._checked(present[0], needed)
        for again in () if stored.may_differ else present[1:]:
            if not np.array_equal(value, self._checked(again, needed)):
                raise UserError(
                    f"{self.file_of(again)}: needs {again} equal to {present[0]}, to which the model ties it, "
                    "and it differs. If they were trained apart, write tie_word_embeddings: false into config.json."
                )
        return _transposed(value) if stored.transposed else value

    def unused(self, names: Iterable[TensorName]) -> list[str]:
        """The names in the file that belong to none of `names`, sorted."""
        used = {place for name in names for place in self._present(name)}
        return sorted({*self.places.values(), *self.others} - used)

    def _stored(self, name: TensorName) -> StoredName:
        return getattr(name, self.column)

    def _present(self, name: TensorName) -> list[str]:
        stored = self._stored(name)
        return [self.places[known] for known in (stored.name, *stored.also, *stored.copies) if known in self.places]

    def _checked(self, name_in_file: str, needed: Sequence[int] | None) -> npt.NDArray[np.float32]:
        shape, what = tuple(self.shape(name_in_file)), f"{self.file_of(name_in_file)}: {name_in_file}"
        if needed is not None and shape != tuple(needed):
            raise UserError(f"{what} needs shape {list(needed)} by the config. Received: {list(shape)}.")
        value = self.value(name_in_file)
        if value is None:
            raise UserError(
                f"{what} needs floating-point numbers. Received: {self.kind(name_in_file)}. Quantized models are not "
                "supported."
            )
        value = value.astype("float32", copy=False)
        require_finite(value, what)
        return value


def as_stored(tensors: Mapping[TensorName, np.ndarray], column: str) -> dict[str, np.ndarray]:
    """`{name in a format's file: array}` of tensors in our orientation, copies included.

    safetensors writes the memory of a buffer regardless of strides, so a transpose must be a copy.
    """
    stored: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        in_file: StoredName = getattr(name, column)
        array = np.ascontiguousarray(value.T if in_file.transposed else value)
        stored.update(dict.fromkeys((in_file.name, *in_file.copies), array))
    return stored


def require_finite(value: np.ndarray, what: str) -> None:
    """Raises `UserError`, which begins with `what`, if a tensor holds NaN or infinity."""
    # The sum alone is almost always enough, and takes a third of the time of looking at each number.
    with np.errstate(all="ignore"):
        if np.isfinite(value.sum()):
            return
    broken = np.count_nonzero(~np.isfinite(value))
    if broken:
        raise UserError(
            f"{what} needs finite numbers. Received: {broken:,} of {value.size:,} that are NaN or infinite. "
            "Was it trained with too high a learning rate? Take an earlier checkpoint."
        )


def _transposed(matrix: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """A transposed copy, made in blocks of rows that fit the CPU's cache: NumPy alone takes twice as long."""
    copy = np.empty(matrix.shape[::-1], matrix.dtype)
    for first in range(0, matrix.shape[0], 64):
        copy[:, first : first + 64] = matrix[first : first + 64].T
    return copy


_SHOWN = 8


@dataclasses.dataclass
class LoadReport:
    """What `ModelFolder.load_into` could not match. All names are those of the file's format.

    Attributes:
        path: the file or folder that was read.
        made_new: the model's tensors that the file lacks; they keep their initial values.
        unused: tensors of the file that the model does not have.
        replaced: the model's tensors that the file has, but that keep their initial values on request.
    """

    path: str
    made_new: list[str]
    unused: list[str]
    replaced: list[str] = dataclasses.field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """A line for each of the three lists that is not empty."""
        if self.made_new:
            yield f"Not in {self.path}, newly initialized: {_listed(self.made_new)}."
        if self.replaced:
            yield f"In {self.path}, but newly initialized: {_listed(self.replaced)}."
        if self.unused:
            yield f"In {self.path}, but not used: {_listed(self.unused)}."


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
