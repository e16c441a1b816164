"""What the losses of tasks share."""

from typing import ClassVar

from keras import ops

from keras_bert.layers.tensors import Batch, Tensor


class ExampleObjective:
    """The base class of losses over the examples of a batch; see `PretrainingObjective`.

    A batch has `example_weights` [batch] float32, 0 for rows that only fill it.

    Class attributes:
        figures: the names of its sums.

    Attributes:
        terms: the names of the loss terms.
    """

    figures: ClassVar[tuple[str, ...]] = ("loss",)
    terms: tuple[str, ...] = ("loss",)

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Float32 scalars to divide the sums by: for each figure, the total weight of the examples."""
        return dict.fromkeys(self.figures, ops.sum(batch["example_weights"]))
