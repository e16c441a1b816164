"""Many optimizer steps in one call of a compiled function, which fetches its batches itself."""

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_bert.training.step import Batch, Step

# The shape of each tensor of a batch, None where a size may be any: ((name, shape), …).
BatchShape = tuple[tuple[str, tuple[int | None, ...]], ...]
# The possible shapes of a run's batches.
BatchShapes = tuple[BatchShape, ...]
_TARGETS = "target_ids"  # [batch, size]; see `LengthBatches`.


class LoopBatches(NamedTuple):
    """The batches of one call: the next `count` of an iterator.

    Attributes:
        iterator: an iterator over global batches, such as `iter` of a distributed data set.
        shapes: the possible shapes of a global batch; see `batch_shapes`.
    """

    iterator: tf.distribute.DistributedIterator
    count: int  # type: ignore[assignment]  # Hides the method of tuple, which nobody calls.
    shapes: BatchShapes


def batch_shapes(element_spec: dict[str, tf.TensorSpec], widths: Iterable[int | tuple[int, int]] | None) -> BatchShapes:
    """The static shapes of the batches of a data set, one for each width.

    Args:
        element_spec: the specs of a global batch; its unknown dimensions are the width.
        widths: the sequence lengths of the batches, or (size, length) if the rows of an example or the tokens of its
            target vary too; None for a single shape with unknown sizes.
    """
    if widths is None:
        return (tuple((name, tuple(spec.shape)) for name, spec in element_spec.items()),)

    def shape(name: str, spec: tf.TensorSpec, width: int | tuple[int, int]) -> tuple[int, ...]:
        sizes, count = width if isinstance(width, tuple) else (width,), list(spec.shape).count(None)
        unknown = iter(sizes if name == _TARGETS else sizes[-count:])
        return tuple(next(unknown) if size is None else size for size in spec.shape)

    return tuple(tuple((name, shape(name, spec, width)) for name, spec in element_spec.items()) for width in widths)


def taking(
    iterator: tf.distribute.DistributedIterator,
    dataset: tf.data.Dataset,
    widths: Iterable[int | tuple[int, int]] | None,
    steps_per_loop: int,
) -> Callable[[int], Batch | LoopBatches]:
    """Function (count) -> the input of `count` steps: the iterator's next batch or, for longer loops, `LoopBatches`.

    Args:
        iterator: an iterator over a distributed data set.
        dataset: that data set, before it was distributed.
        widths: see `batch_shapes`.
        steps_per_loop: the most steps in one call.
    """
    if steps_per_loop == 1:
        return lambda count: next(iterator)
    shapes = batch_shapes(dataset.element_spec, widths)
    return lambda count: LoopBatches(iterator, count, shapes)


def steps_of(batch: Batch | LoopBatches) -> int:
    """How many steps `Step.train` or `StepLoop.train` takes for an input."""
    return batch.count if isinstance(batch, LoopBatches) else 1


def trainer(step: Step, steps_per_loop: int) -> "Step | StepLoop":
    """What trains `steps_per_loop` steps in a call: the step itself or a `StepLoop` of it."""
    return step if steps_per_loop == 1 else StepLoop(step)


class StepLoop:
    """Trains like a `Step`, but many steps per call, so that a fast accelerator does not wait for Python in between.

    The loop runs on the host and calls the step, so figures and weights are the same, bit for bit, as with single calls
    of `Step.train`. Each shape of `LoopBatches` has its own branch in it.
    """

    def __init__(self, step: Step):
        self._step = step
        self._strategy = step.strategy
        self.objective = step.objective
        self._loops: dict[BatchShapes, Callable[..., dict[str, Any]]] = {}

    def train(self, batches: LoopBatches, step: tf.Tensor) -> dict[str, Any]:
        """Runs the steps of a `LoopBatches`; `step` is an int64 scalar, the number of steps before them.

        Returns what `Step.train` does, with each value of shape [steps], and `steps`, how many there are.
        """
        if batches.shapes not in self._loops:
            self._loops[batches.shapes] = tf.function(functools.partial(self._loop, batches.shapes), autograph=False)
        loop = self._loops[batches.shapes]
        return {**loop(batches.iterator, step, tf.constant(batches.count)), "steps": batches.count}

    def _loop(
        self, shapes: BatchShapes, iterator: tf.distribute.DistributedIterator, first_step: tf.Tensor, count: tf.Tensor
    ) -> dict[str, Any]:
        structure: dict[str, Any] = {}

        def one_step(index: tf.Tensor, rows: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            batch, step = iterator.get_next(), first_step + tf.cast(index, tf.int64)

            def written(rows: tf.TensorArray, shape: BatchShape) -> tf.TensorArray:
                result = self._step.update(self._shaped(batch, dict(shape)), step)
                structure["result"] = tf.nest.map_structure(lambda value: None, result)
                return rows.write(index, tf.stack(tf.nest.flatten(result)))

            return index + 1, self._by_shape(batch, shapes, written, rows)

        state = (tf.constant(0), tf.TensorArray(tf.float32, count))
        _, rows = tf.while_loop(lambda index, rows: index < count, one_step, state, parallel_iterations=1)
        return tf.nest.pack_sequence_as(structure["result"], tf.unstack(rows.stack(), axis=1))

    def _by_shape(
        self, batch: Batch, shapes: BatchShapes, function: Callable[..., tf.Tensor], value: tf.Tensor
    ) -> tf.Tensor:
        """Calls `function(value, shape)` with the one of `shapes` that the batch has."""
        *others, last = shapes
        if not others:
            return function(value, last)
        names = [name for name in ("input_word_ids", _TARGETS) if name in batch]
        # Without the batch dimension, of which each replica has a part.
        parts = [self._strategy.experimental_local_results(batch[name])[0] for name in names]
        found = tf.concat([tf.shape(part)[1:] for part in parts], axis=0)
        matches = [tf.reduce_all(found == sum((dict(shape)[name][1:] for name in names), ())) for shape in others]
        for shape, is_match in zip(shapes, [*matches, ~tf.reduce_any(matches)]):
            # A loop with at most one iteration, because inside a `tf.cond` a reduction over replicas does not get its
            # collective keys.
            _, value = tf.while_loop(
                lambda is_match, value: is_match,
                lambda is_match, value, shape=shape: (tf.constant(False), function(value, shape)),
                (is_match, value),
            )
        return value

    def _shaped(self, batch: Batch, shapes: dict[str, tuple[int | None, ...]]) -> Batch:
        """The batch with the shapes of each replica's part, which a distributed iterator may lose."""
        replicas = self._strategy.num_replicas_in_sync

        def shaped(name: str, part: tf.Tensor) -> tf.Tensor:
            size, *others = shapes[name]
            assert size is not None, "Only widths may be unknown."
            return tf.ensure_shape(part, [size // replicas, *others])

        return {
            name: tf.nest.map_structure(functools.partial(shaped, name), value, expand_composites=True)
            for name, value in batch.items()
        }
