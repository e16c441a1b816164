"""Batches of examples of similar length, in a few static shapes, for fine-tuning."""

import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_bert.data.batches.segments import segment_ids
from keras_bert.data.batches.token_rows import TokenRows

# For a single pass over the rows: more shapes would take longer to trace than they save.
FEW_SHAPES = 4
# For a model that is traced once for all shapes: with this many there is hardly any padding.
MANY_SHAPES = 32


def choose_widths(lengths: np.ndarray, most: int = 8, multiple: int = 2) -> list[int]:
    """The static sequence lengths, ascending, with the least padding when each row is padded to the next width.

    Args:
        lengths: int [rows], tokens of each row.
        most: the most widths to choose; each is compiled once.
        multiple: every width is a multiple of this.
    """
    counts = np.bincount(-(-np.asarray(lengths) // multiple))
    rounded, counts = np.flatnonzero(counts) * multiple, counts[counts > 0]
    # cost[k, j]: tokens, padding included, of all rows up to the j-th length in k widths, the last being that length.
    below = np.concatenate([[0], np.cumsum(counts)])
    most = min(most, len(rounded))
    cost = np.full((most + 1, len(rounded) + 1), np.inf)
    before = np.zeros(cost.shape, int)
    cost[:, 0] = 0.0
    for widths in range(1, most + 1):
        for last in range(1, len(rounded) + 1):
            candidates = cost[widths - 1, :last] + (below[last] - below[:last]) * rounded[last - 1]
            before[widths, last] = np.argmin(candidates)
            cost[widths, last] = candidates[before[widths, last]]
    chosen, last = [], len(rounded)
    for widths in range(most, 0, -1):
        if last == 0:
            break
        chosen.append(int(rounded[last - 1]))
        last = before[widths, last]
    return chosen[::-1]


def choose_shapes(rows: TokenRows, most: int = 8) -> tuple[list[int], list[int]]:
    """(widths, sizes), both ascending: the static shapes with the least padding.

    Args:
        most: the most pairs of a width and a size (see `TokenRows.sizes`); each is compiled once.
    """
    lengths, choices = rows.lengths, []
    for most_sizes in range(1, min(most, len(np.unique(rows.sizes))) + 1):
        sizes = choose_widths(rows.sizes, most_sizes, multiple=2 if rows.targets else 1)
        widths = choose_widths(lengths, most // most_sizes)
        padded = np.take(widths, np.searchsorted(widths, lengths)), np.take(sizes, np.searchsorted(sizes, rows.sizes))
        choices.append((_positions(rows, *padded).sum(), widths, sizes))
    _, widths, sizes = min(choices, key=lambda choice: choice[0])
    return widths, sizes


def _positions(rows: TokenRows, widths: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """int [examples]: the positions of examples of these shapes, including those of their targets."""
    return widths + sizes if rows.targets else widths * sizes


class LengthBatches:
    """`batch = f(epoch, number)` over `TokenRows`, each batch with rows of similar length.

    Examples with several rows are batched with examples of a similar number of rows, so that one with fifty choices
    does not make the others as expensive. Examples with targets are batched by target length too. The order is a
    function of seed and epoch. Rows that are too few for a batch of their width move to the next width, and from the
    last width to the next size, so that only one batch of an epoch is incomplete; rows of weight 0 complete it.

    Args:
        widths: sequence lengths, as from `choose_widths`; a single one pads every row to it.
        shuffle: False keeps the order of the rows within a width, for evaluation.
        sizes: what `TokenRows.sizes` may be padded to: the rows of an example, or the tokens of its target; see
            `choose_shapes`. None pads all examples to the size of the largest.

    Attributes:
        padding_share: share of padding in the positions of an epoch.
        typical_batch: the number of a batch of epoch 0 with the median number of positions.
        widths: the sequence lengths of the batches; with several sizes, pairs (size, length).
    """

    widths: tuple[int, ...] | tuple[tuple[int, int], ...]

    def __init__(
        self,
        rows: TokenRows,
        batch_size: int,
        seed: int,
        pad_id: int,
        widths: Sequence[int],
        shuffle: bool = True,
        sizes: Sequence[int] | None = None,
    ):
        self._rows = rows
        self._batch_size = batch_size
        self._seed = seed
        self._pad_id = pad_id
        self._widths = np.asarray(widths)
        self._sizes = np.asarray([rows.sizes.max()] if sizes is None else sizes)
        for name, needed, given in (
            ("widths", rows.lengths.max(), self._widths),
            ("sizes", rows.sizes.max(), self._sizes),
        ):
            if needed > given[-1]:
                raise ValueError(f"{name}: need one of at least {needed}. Received: {given.tolist()}.")
        self._shuffle = shuffle
        self.widths = tuple(self._widths.tolist())
        if len(self._sizes) > 1:
            self.widths = tuple(itertools.product(self._sizes.tolist(), self._widths.tolist()))
        plan, batch_widths, batch_sizes = self._plan(0)
        self.batches_per_epoch = len(plan)
        self.examples_per_epoch = len(rows)
        positions, tokens = _positions(rows, batch_widths, batch_sizes), len(rows.ids)
        tokens += len(rows.targets.ids) if rows.targets else 0
        self.padding_share = 1.0 - tokens / (positions.sum() * batch_size)
        self.typical_batch = int(np.argsort(positions, kind="stable")[len(positions) // 2])

    def remove_epoch(self, epoch: int) -> None:
        """Does nothing: an epoch leaves no files behind."""

    @tf.autograph.experimental.do_not_convert  # AutoGraph would search for control flow for seconds; there is none.
    def epoch(self, epoch: int, first_batch: int = 0) -> tf.data.Dataset:
        """The batches `first_batch`, `first_batch + 1`, … of an epoch.

        A batch has the encoder's three inputs, int32 [batch, width], the rows' extras, `example_weights` float32
        [batch], and `row_numbers` int32 [batch], the numbers of the examples, -1 for one that only fills the batch.
        For examples with several rows the inputs are [batch, group size, width], and the mask of a row that an example
        does not have is all 0. Examples with targets have `target_ids`; see `TokenRows`.
        """
        plan, widths, sizes = self._plan(epoch)
        ids, starts, seconds, extra, token_extra = self._constants
        token_files = self._rows.token_files
        rows_of, targets_of = self._rows_of_examples(), self._targets_of_examples()
        one_size = int(self._sizes[0]) if len(self._sizes) == 1 else None

        def assemble(numbers: tf.Tensor, width: tf.Tensor | int, size: tf.Tensor | int) -> dict[str, tf.Tensor]:
            size = one_size or size  # A Python number keeps the shape static.
            # Examples that fill the batch copy its first one, so that their label is one of their choices.
            example = tf.where(numbers >= 0, numbers, numbers[0])
            weights = tf.cast(numbers >= 0, tf.float32)
            row, is_there, is_real = rows_of(example, numbers >= 0, size)
            begins = tf.gather(starts, row)
            lengths = tf.cast(tf.gather(starts, row + 1) - begins, tf.int32)
            column = tf.range(width)
            # A row that fills the batch keeps its [CLS], because attention over nothing is NaN.
            mask = is_there[..., None] & (column < tf.where(is_real, lengths, 1)[..., None])
            place = tf.where(mask, begins[..., None] + tf.cast(column, tf.int64), 0)
            segments = segment_ids(mask, tf.gather(seconds, row), self._rows.last_segment)
            from_tokens = {
                name: tf.where(mask & is_real[..., None], tf.gather(values, place), -1)
                for name, values in token_extra.items()
            }
            from_files = {name: _zero_outside(file.read(place), mask) for name, file in token_files.items()}
            batch = {name: tf.gather(values, example) for name, values in extra.items()}
            return {
                **batch,
                **targets_of(example, numbers >= 0, size),
                **from_tokens,
                **from_files,
                "input_word_ids": tf.where(mask, tf.cast(tf.gather(ids, place), tf.int32), self._pad_id),
                "input_mask": tf.cast(mask, tf.int32),
                "input_type_ids": segments,
                "example_weights": weights * batch.get("example_weights", 1.0),
                "row_numbers": tf.cast(numbers, tf.int32),
            }

        batches = tf.data.Dataset.from_tensor_slices(
            (plan[first_batch:], widths[first_batch:].astype("int32"), sizes[first_batch:])
        )
        options = tf.data.Options()
        # There is nothing to tune, and dropping an iterator would wait up to a minute for the thread that tunes.
        options.autotune.enabled = False
        return batches.map(assemble, num_parallel_calls=2, deterministic=True).prefetch(4).with_options(options)

    @functools.cached_property
    def _constants(self) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, dict[str, tf.Tensor], dict[str, tf.Tensor]]:
        """The rows as TensorFlow constants, shared by all epochs: the next is prepared while one trains."""
        rows = self._rows
        return tf.nest.map_structure(
            tf.constant, (rows.ids, rows.starts, rows.second_starts, dict(rows.extra), dict(rows.token_extra))
        )

    def _rows_of_examples(self) -> Callable[..., tuple[tf.Tensor, tf.Tensor, tf.Tensor]]:
        """Function (example [batch], is_real [batch], size) -> (its rows, whether they exist, whether they are real).

        Each result is [batch], or [batch, size] for examples with several rows.
        """
        if self._rows.group_starts is None:
            return lambda example, is_real, size: (example, tf.ones_like(is_real), is_real)
        group_starts = tf.constant(self._rows.group_starts)

        def rows_of(
            example: tf.Tensor, is_real: tf.Tensor, size: tf.Tensor | int
        ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            first = tf.gather(group_starts, example)[:, None]
            row = first + tf.range(size, dtype=tf.int64)
            is_there = row < tf.gather(group_starts, example + 1)[:, None]
            return tf.where(is_there, row, first), is_there, tf.broadcast_to(is_real[:, None], tf.shape(row))

        return rows_of

    def _targets_of_examples(self) -> Callable[..., dict[str, tf.Tensor]]:
        """Function (example [batch], is_real [batch], size) -> {"target_ids": [batch, size]}; {} without targets."""
        targets = self._rows.targets
        if targets is None:
            return lambda example, is_real, size: {}
        ids, starts = tf.constant(targets.ids), tf.constant(targets.starts)

        def targets_of(example: tf.Tensor, is_real: tf.Tensor, size: tf.Tensor | int) -> dict[str, tf.Tensor]:
            begins = tf.gather(starts, example)[:, None]
            place = begins + tf.range(size, dtype=tf.int64)
            is_there = is_real[:, None] & (place < tf.gather(starts, example + 1)[:, None])
            return {
                "target_ids": tf.where(is_there, tf.cast(tf.gather(ids, tf.where(is_there, place, 0)), tf.int32), -1)
            }

        return targets_of

    def all_batches(self) -> tf.data.Dataset:
        """The batches of epoch 0, which has every row once."""
        return self.epoch(0)

    def _plan(self, epoch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (numbers of examples [batches, batch_size], -1 for none; each batch's width; its size), all int64."""
        random = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
        order = random.permutation(len(self._rows)) if self._shuffle else np.arange(len(self._rows))
        lengths, sizes = self._rows.lengths, self._rows.sizes
        bucket = np.searchsorted(self._widths, lengths).astype(np.int16)
        if len(self._sizes) > 1:
            bucket += np.searchsorted(self._sizes, sizes).astype(np.int16) * np.int16(len(self._widths))
        bucket = bucket[order]
        parts: list[np.ndarray] = []  # Of the plan, one for each shape.
        part_shapes: list[tuple[int, int]] = []
        left = smaller = order[:0]
        for number, (size, width) in enumerate(itertools.product(self._sizes, self._widths)):
            members = np.concatenate([left, order[bucket == number]])
            if width == self._widths[-1]:  # Rows left over from the previous size fit here too.
                members = np.concatenate([smaller, members])
            full = len(members) // self._batch_size * self._batch_size
            left = members[full:]
            parts.append(members[:full].reshape(-1, self._batch_size))
            part_shapes += [(width, size)] * len(parts[-1])
            if width == self._widths[-1]:
                left, smaller = order[:0], left
        if len(smaller):
            parts.append(np.pad(smaller, (0, self._batch_size - len(smaller)), constant_values=-1)[None])
            width = self._widths[np.searchsorted(self._widths, lengths[smaller].max())]
            part_shapes.append((width, self._sizes[np.searchsorted(self._sizes, sizes[smaller].max())]))
        plan, shapes = np.concatenate(parts).astype("int64"), np.array(part_shapes, np.int64)
        if self._shuffle:
            batches = random.permutation(len(plan))
            plan, shapes = plan[batches], shapes[batches]
        return plan, *shapes.T


def every_row_once(
    rows: TokenRows, batch_size: int, pad_id: int, widths: Sequence[int] | None = None, most: int = FEW_SHAPES
) -> tf.data.Dataset:
    """The batches of `LengthBatches` with every row once, unshuffled.

    Args:
        widths: see `choose_widths`; None chooses shapes.
        most: the most shapes to choose.
    """
    widths, sizes = choose_shapes(rows, most) if widths is None else (widths, None)
    return LengthBatches(rows, batch_size, 0, pad_id, widths, shuffle=False, sizes=sizes).all_batches()


def _zero_outside(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """`values` [..., any further axes] where `mask` [...] is true, else 0."""
    for _ in range(values.shape.rank - mask.shape.rank):
        mask = mask[..., None]
    return tf.where(mask, values, tf.zeros((), values.dtype))
