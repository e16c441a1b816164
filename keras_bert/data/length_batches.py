"""Batches of examples of like length, in a few static shapes: what fine-tuning reads."""

import dataclasses

import numpy as np
import tensorflow as tf


@dataclasses.dataclass
class TokenRows:
    """Rows of ids, special tokens included, as flat arrays.

    Attributes:
        ids: int32 [tokens], all rows one after the other.
        starts: int64 [rows + 1], where each row begins in `ids`.
        second_starts: int32 [rows], the position in its row where the second segment begins; its length for none.
        extra: `{name: array [rows, ...]}` that a batch holds too: labels, weights, numbers of examples.
    """

    ids: np.ndarray
    starts: np.ndarray
    second_starts: np.ndarray
    extra: dict

    @property
    def lengths(self):
        return np.diff(self.starts)

    def __len__(self):
        return len(self.second_starts)


def choose_widths(lengths, most=8, multiple=4):
    """The static sequence lengths, ascending, that leave the least padding when each row takes the next above it.

    Args:
        lengths: int array, tokens of each row.
        most: how many widths there may be: each is compiled once.
        multiple: of which every width is one.
    """
    rounded, counts = np.unique(-(-np.asarray(lengths) // multiple) * multiple, return_counts=True)
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


class LengthBatches:
    """`batch = f(epoch, number)` over `TokenRows`, each batch of rows of like length.

    Every epoch has its own order, a function of the seed and the epoch. A width's last rows that do not fill a batch
    go to the next width, so that an epoch has one batch that is not full, and that is filled with rows of weight 0.

    Args:
        rows: the `TokenRows`.
        batch_size: rows of a batch.
        seed: of the order.
        pad_id: the id of [PAD].
        widths: sequence lengths as `choose_widths` gives them; one alone pads every row to it.
        shuffle: False keeps the rows' order within a width (for evaluation).

    Attributes:
        batches_per_epoch, examples_per_epoch, padding_share: of one epoch.
    """

    def __init__(self, rows, batch_size, seed, pad_id, widths, shuffle=True):
        if max(rows.lengths) > widths[-1]:
            raise ValueError(f"widths: need one of {max(rows.lengths)} or more. Received: {widths}.")
        self._rows = rows
        self._batch_size = batch_size
        self._seed = seed
        self._pad_id = pad_id
        self._widths = np.asarray(widths)
        self._shuffle = shuffle
        plan, batch_widths = self._plan(0)
        self.batches_per_epoch = len(plan)
        self.examples_per_epoch = len(rows)
        self.padding_share = 1.0 - rows.lengths.sum() / (batch_widths.sum() * batch_size)

    def remove_epoch(self, epoch):
        """Nothing is kept of an epoch."""

    def epoch(self, epoch, first_batch=0):
        """A `tf.data.Dataset` of the batches `first_batch`, `first_batch + 1`, … of an epoch.

        A batch has the encoder's three inputs, [batch, width] int32, what the rows hold besides, `example_weights`
        [batch] float32, and `row_numbers` [batch] int32, -1 where a row only fills the batch.
        """
        plan, widths = self._plan(epoch)
        ids, starts = tf.constant(self._rows.ids), tf.constant(self._rows.starts)
        seconds = tf.constant(self._rows.second_starts)
        extra = {name: tf.constant(values) for name, values in self._rows.extra.items()}

        def assemble(numbers, width):
            is_real = numbers >= 0
            row = tf.maximum(numbers, 0)
            begins = tf.gather(starts, row)
            lengths = tf.cast(tf.gather(starts, row + 1) - begins, tf.int32)
            column = tf.range(width)[None, :]
            # A row that fills up a batch keeps its [CLS]: attention over nothing is no number.
            mask = column < tf.where(is_real, lengths, 1)[:, None]
            tokens = tf.gather(ids, tf.where(mask, begins[:, None] + tf.cast(column, tf.int64), 0))
            second = mask & (column >= tf.gather(seconds, row)[:, None])
            weights = tf.cast(is_real, tf.float32)
            batch = {name: tf.gather(values, row) for name, values in extra.items()}
            return {
                **batch,
                "input_word_ids": tf.where(mask, tokens, self._pad_id),
                "input_mask": tf.cast(mask, tf.int32),
                "input_type_ids": tf.cast(second, tf.int32),
                "example_weights": weights * batch.get("example_weights", 1.0),
                "row_numbers": tf.cast(numbers, tf.int32),
            }

        batches = tf.data.Dataset.from_tensor_slices((plan[first_batch:], widths[first_batch:].astype("int32")))
        return batches.map(assemble, num_parallel_calls=2, deterministic=True).prefetch(4)

    def all_batches(self):
        """A `tf.data.Dataset` of every row once."""
        return self.epoch(0)

    def _plan(self, epoch):
        """(row numbers [batches, batch_size] int64, -1 where there is none; width of each batch [batches])."""
        random = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
        order = random.permutation(len(self._rows)) if self._shuffle else np.arange(len(self._rows))
        bucket = np.searchsorted(self._widths, self._rows.lengths[order])
        plan, widths, left = [], [], np.zeros(0, int)
        for number, width in enumerate(self._widths):
            members = np.concatenate([left, order[bucket == number]])
            full = len(members) // self._batch_size * self._batch_size
            left = members[full:]
            plan.append(members[:full].reshape(-1, self._batch_size))
            widths += [width] * len(plan[-1])
        if len(left):
            plan.append(np.pad(left, (0, self._batch_size - len(left)), constant_values=-1)[None])
            widths.append(self._widths[np.searchsorted(self._widths, self._rows.lengths[left].max())])
        plan, widths = np.concatenate(plan).astype("int64"), np.array(widths)
        if self._shuffle:
            batches = random.permutation(len(plan))
            plan, widths = plan[batches], widths[batches]
        return plan, widths
