"""Batches of examples of like length, in a few static shapes: what fine-tuning reads."""

import dataclasses
import functools
import itertools

import numpy as np
import tensorflow as tf

# For rows that are gone through once: more would take longer to trace than they save.
FEW_SHAPES = 4


@dataclasses.dataclass
class TokenRows:
    """Rows of ids, special tokens included, as flat arrays.

    Attributes:
        ids: int32 or uint16 [tokens], all rows one after the other.
        starts: int64 [rows + 1], where each row begins in `ids`.
        second_starts: int32 [rows], the position in its row where the second segment begins; its length for none.
        extra: `{name: array [examples, ...]}` that a batch holds too: labels, weights, numbers of examples.
        token_extra: `{name: int32 [tokens]}` that a batch holds too, [batch, width], -1 at padding: labels of tokens.
        token_files: `{name: file}` whose `read(int64 [batch, width])`, given places of tokens, gives what a batch holds
            too, [batch, width, ...], 0 at padding: see `data.feature_files.FeatureFile`.
        group_starts: int64 [examples + 1], where each example's rows begin, for examples of several rows (choices);
            None where every row is an example.
    """

    ids: np.ndarray
    starts: np.ndarray
    second_starts: np.ndarray
    extra: dict
    token_extra: dict = dataclasses.field(default_factory=dict)
    token_files: dict = dataclasses.field(default_factory=dict)
    group_starts: np.ndarray | None = None

    @property
    def lengths(self):
        """int64 [examples]: the tokens of each, of its longest row."""
        lengths = np.diff(self.starts)
        return lengths if self.group_starts is None else np.maximum.reduceat(lengths, self.group_starts[:-1])

    @property
    def group_sizes(self):
        """int64 [examples]: the rows of each."""
        one = np.broadcast_to(np.int64(1), len(self))  # Of ten million rows, without ten million ones.
        return one if self.group_starts is None else np.diff(self.group_starts)

    def __len__(self):
        return len(self.second_starts if self.group_starts is None else self.group_starts[1:])


def choose_widths(lengths, most=8, multiple=2):
    """The static sequence lengths, ascending, that leave the least padding when each row takes the next above it.

    Args:
        lengths: int array, tokens of each row.
        most: how many widths there may be: each is compiled once.
        multiple: of which every width is one.
    """
    counts = np.bincount(-(-np.asarray(lengths) // multiple))
    rounded, counts = np.flatnonzero(counts) * multiple, counts[counts > 0]
    # cost[k, j]: tokens, padding included, of all rows up to the j-th length in k widths of which the j-th is the last.
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


def choose_shapes(rows, most=8):
    """`(widths, group_sizes)`, ascending: the static shapes that leave the least padding, at most so many in all.

    Args:
        rows: `TokenRows`.
        most: the most pairs of a width and a group size: each is compiled once.
    """
    lengths, sizes = rows.lengths, rows.group_sizes
    choices = []
    for most_sizes in range(1, min(most, len(np.unique(sizes))) + 1):
        group_sizes = choose_widths(sizes, most_sizes, multiple=1)
        widths = choose_widths(lengths, most // most_sizes)
        tokens = np.dot(
            np.take(widths, np.searchsorted(widths, lengths)),
            np.take(group_sizes, np.searchsorted(group_sizes, sizes)),
        )
        choices.append((tokens, widths, group_sizes))
    _, widths, group_sizes = min(choices, key=lambda choice: choice[0])
    return widths, group_sizes


class LengthBatches:
    """`batch = f(epoch, number)` over `TokenRows`, each batch of rows of like length.

    Examples of several rows are together with those of about as many, too, so that one of fifty choices does not make
    all others as costly. Every epoch has its own order, a function of the seed and the epoch. A width's last rows that
    do not fill a batch go to the next width, and those of a group size to the next, so that an epoch has one batch that
    is not full, and that is filled with rows of weight 0.

    Args:
        rows: the `TokenRows`.
        batch_size: examples of a batch.
        seed: of the order.
        pad_id: the id of [PAD].
        widths: sequence lengths as `choose_widths` gives them; one alone pads every row to it.
        shuffle: False keeps the rows' order within a width (for evaluation).
        group_sizes: of examples of several rows, how many rows a batch has room for in each; see `choose_shapes`. Those
            of the largest example alone where None.

    Attributes:
        batches_per_epoch, examples_per_epoch, padding_share: of one epoch.
        widths: the sequence lengths of batches; with several group sizes each as (group size, length).
    """

    def __init__(self, rows, batch_size, seed, pad_id, widths, shuffle=True, group_sizes=None):
        self._rows = rows
        self._batch_size = batch_size
        self._seed = seed
        self._pad_id = pad_id
        self._widths = np.asarray(widths)
        self._group_sizes = np.asarray([rows.group_sizes.max()] if group_sizes is None else group_sizes)
        for name, needed, given in (
            ("widths", rows.lengths.max(), self._widths),
            ("group_sizes", rows.group_sizes.max(), self._group_sizes),
        ):
            if needed > given[-1]:
                raise ValueError(f"{name}: need one of {needed} or more. Received: {given.tolist()}.")
        self._shuffle = shuffle
        self.widths = tuple(self._widths.tolist())
        if len(self._group_sizes) > 1:
            self.widths = tuple(itertools.product(self._group_sizes.tolist(), self.widths))
        plan, batch_widths, batch_sizes = self._plan(0)
        self.batches_per_epoch = len(plan)
        self.examples_per_epoch = len(rows)
        self.padding_share = 1.0 - len(rows.ids) / (np.dot(batch_widths, batch_sizes) * batch_size)

    def remove_epoch(self, epoch):
        """Nothing is kept of an epoch."""

    @tf.autograph.experimental.do_not_convert  # To look for control flow takes seconds, and there is none.
    def epoch(self, epoch, first_batch=0):
        """A `tf.data.Dataset` of the batches `first_batch`, `first_batch + 1`, … of an epoch.

        A batch has the encoder's three inputs, [batch, width] int32, what the rows hold besides, `example_weights`
        [batch] float32, and `row_numbers` [batch] int32, the numbers of the examples, -1 where one only fills the
        batch. Of examples of several rows the inputs are [batch, group size, width], and the mask is 0 throughout a row
        that an example has not.
        """
        plan, widths, sizes = self._plan(epoch)
        ids, starts, seconds, extra, token_extra = self._constants
        token_files = self._rows.token_files
        rows_of = self._rows_of_examples()

        def assemble(numbers, width, size):
            # What fills a batch looks like its first example, whose label is among its choices.
            example = tf.where(numbers >= 0, numbers, numbers[0])
            weights = tf.cast(numbers >= 0, tf.float32)
            row, is_there, is_real = rows_of(example, numbers >= 0, size)
            begins = tf.gather(starts, row)
            lengths = tf.cast(tf.gather(starts, row + 1) - begins, tf.int32)
            column = tf.range(width)
            # A row that fills up a batch keeps its [CLS]: attention over nothing is no number.
            mask = is_there[..., None] & (column < tf.where(is_real, lengths, 1)[..., None])
            place = tf.where(mask, begins[..., None] + tf.cast(column, tf.int64), 0)
            second = mask & (column >= tf.gather(seconds, row)[..., None])
            of_tokens = {
                name: tf.where(mask & is_real[..., None], tf.gather(values, place), -1)
                for name, values in token_extra.items()
            }
            from_files = {name: _zero_outside(file.read(place), mask) for name, file in token_files.items()}
            batch = {name: tf.gather(values, example) for name, values in extra.items()}
            return {
                **batch,
                **of_tokens,
                **from_files,
                "input_word_ids": tf.where(mask, tf.cast(tf.gather(ids, place), tf.int32), self._pad_id),
                "input_mask": tf.cast(mask, tf.int32),
                "input_type_ids": tf.cast(second, tf.int32),
                "example_weights": weights * batch.get("example_weights", 1.0),
                "row_numbers": tf.cast(numbers, tf.int32),
            }

        batches = tf.data.Dataset.from_tensor_slices(
            (plan[first_batch:], widths[first_batch:].astype("int32"), sizes[first_batch:])
        )
        return batches.map(assemble, num_parallel_calls=2, deterministic=True).prefetch(4)

    @functools.cached_property
    def _constants(self):
        """The rows in TensorFlow's memory, once for all epochs: of two at a time the next is being prepared."""
        rows = self._rows
        return tf.nest.map_structure(
            tf.constant, (rows.ids, rows.starts, rows.second_starts, dict(rows.extra), dict(rows.token_extra))
        )

    def _rows_of_examples(self):
        """Function (example [batch], is_real [batch], size) -> (its rows, whether they exist, whether they are real).

        Each is [batch], or [batch, size] of examples of several rows.
        """
        if self._rows.group_starts is None:
            return lambda example, is_real, size: (example, tf.ones_like(is_real), is_real)
        group_starts = tf.constant(self._rows.group_starts)
        one_size = int(self._group_sizes[0]) if len(self._group_sizes) == 1 else None

        def rows_of(example, is_real, size):
            first = tf.gather(group_starts, example)[:, None]
            row = first + tf.range(one_size or size, dtype=tf.int64)  # A Python number keeps the shape static.
            is_there = row < tf.gather(group_starts, example + 1)[:, None]
            return tf.where(is_there, row, first), is_there, tf.broadcast_to(is_real[:, None], tf.shape(row))

        return rows_of

    def all_batches(self):
        """A `tf.data.Dataset` of every row once."""
        return self.epoch(0)

    def _plan(self, epoch):
        """(numbers of examples [batches, batch_size], -1 for none; width, group size of each batch), all int64."""
        random = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
        order = random.permutation(len(self._rows)) if self._shuffle else np.arange(len(self._rows))
        lengths, sizes = self._rows.lengths, self._rows.group_sizes
        bucket = np.searchsorted(self._widths, lengths).astype(np.int16)
        if len(self._group_sizes) > 1:
            bucket += np.searchsorted(self._group_sizes, sizes).astype(np.int16) * np.int16(len(self._widths))
        bucket = bucket[order]
        plan, shapes, left, smaller = [], [], order[:0], order[:0]
        for number, (size, width) in enumerate(itertools.product(self._group_sizes, self._widths)):
            members = np.concatenate([left, order[bucket == number]])
            if width == self._widths[-1]:  # Where what is left of the size before finds room, too.
                members = np.concatenate([smaller, members])
            full = len(members) // self._batch_size * self._batch_size
            left = members[full:]
            plan.append(members[:full].reshape(-1, self._batch_size))
            shapes += [(width, size)] * len(plan[-1])
            if width == self._widths[-1]:
                left, smaller = order[:0], left
        if len(smaller):
            plan.append(np.pad(smaller, (0, self._batch_size - len(smaller)), constant_values=-1)[None])
            width = self._widths[np.searchsorted(self._widths, lengths[smaller].max())]
            shapes.append((width, self._group_sizes[np.searchsorted(self._group_sizes, sizes[smaller].max())]))
        plan, shapes = np.concatenate(plan).astype("int64"), np.array(shapes, np.int64)
        if self._shuffle:
            batches = random.permutation(len(plan))
            plan, shapes = plan[batches], shapes[batches]
        return plan, *shapes.T


def every_row_once(rows, batch_size, pad_id, widths=None):
    """A `tf.data.Dataset` of batches with every row of `TokenRows` once, unshuffled, as `LengthBatches` gives them.

    Args:
        widths: see `choose_widths`; `FEW_SHAPES` of `choose_shapes` where None.
    """
    widths, group_sizes = choose_shapes(rows, FEW_SHAPES) if widths is None else (widths, None)
    return LengthBatches(rows, batch_size, 0, pad_id, widths, shuffle=False, group_sizes=group_sizes).all_batches()


def _zero_outside(values, mask):
    """`values` [..., of any more axes] where `mask` [...] is true, else 0."""
    for _ in range(values.shape.rank - mask.shape.rank):
        mask = mask[..., None]
    return tf.where(mask, values, tf.zeros((), values.dtype))
