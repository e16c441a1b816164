"""What the losses of tasks share."""

from keras import ops

from keras_bert.layers.tensors import Batch, Sums, Tensor


class ExampleObjective:
    """The base class of losses over the examples of a batch; see `PretrainingObjective`.

    A batch has `example_weights` [batch] float32, 0 for rows that only fill it.

    Attributes:
        figures: the names of its figures.
        terms: the names of the loss terms.
    """

    figures: tuple[str, ...] = ("loss",)
    terms: tuple[str, ...] = ("loss",)

    def weights(self, batch: Batch) -> Tensor:
        """The weight of each example: float32 [batch], or [batch, seq] if tokens are the examples."""
        return batch["example_weights"]

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Float32 scalars to divide the sums by: for each figure, the total weight of the examples."""
        return dict.fromkeys(self.figures, ops.sum(self.weights(batch)))

    def sums(self, outputs: Batch, batch: Batch) -> Sums:
        """`{name: {name: scalar}}`, the weighted sum of each figure."""
        weights = self.weights(batch)
        return {name: {name: ops.sum(values * weights)} for name, values in self.figures_of(outputs, batch).items()}

    def figures_of(self, outputs: Batch, batch: Batch) -> dict[str, Tensor]:
        """The figures of each example, float32 in the shape of `weights`."""
        raise NotImplementedError
