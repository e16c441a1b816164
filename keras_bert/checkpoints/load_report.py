"""What reading a folder into a model could not match."""

import dataclasses

_SHOWN = 8


@dataclasses.dataclass
class LoadReport:
    """What `ModelFolder.load_into` could not match.

    Attributes:
        path: the file or folder that was read.
        made_new: the model's tensors that it lacks, under the names it would have; they keep their first values.
        unused: names of the tensors in the file that the model has no place for.
        replaced: the model's tensors that it holds and that were made new all the same, as was asked for.
    """

    path: str
    made_new: list
    unused: list
    replaced: list = dataclasses.field(default_factory=list)

    def lines(self):
        """One line for each of the three, where there is something to say."""
        if self.made_new:
            yield f"Not in {self.path}, and made new: {_listed(self.made_new)}."
        if self.replaced:
            yield f"In {self.path}, and made new all the same: {_listed(self.replaced)}."
        if self.unused:
            yield f"In {self.path}, and not used: {_listed(self.unused)}."


def _listed(names):
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
