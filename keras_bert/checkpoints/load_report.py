"""What could not be matched when a folder was loaded into a model."""

import dataclasses
from collections.abc import Iterator

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
