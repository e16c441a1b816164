"""The memory of an XLNet in pretraining: the states of the rows before (Dai et al. 2019; Yang et al. 2019)."""

from typing import Any

import tensorflow as tf

_AFTER_TEXT = 2  # <sep> and <cls>, which end the row but not the text.


class SegmentMemory(tf.Module):
    """What each block read of the tokens before each row of the next batch, kept from step to step.

    The memory has no gaps, as the text has none: padding and the row's last <sep> and <cls> are left out. If it is
    longer than a row, tokens stay in it for several batches.

    Every replica has the memory of all rows and reads only its own, so that a run has the same numbers on any number of
    replicas. Create it in the strategy's scope. Its variables belong in the checkpoint.

    Args:
        rows: rows of the largest batch.
        length: how many tokens are remembered of each row.
        blocks, hidden_size: the encoder's.

    Attributes:
        states: for each block a float32 variable [rows, length, hidden].
        is_token: float32 variable [rows, length], 1 where the memory has a token.
        batch_number: int64 variable, the number of the batch that was remembered.
    """

    def __init__(self, rows: int, length: int, blocks: int, hidden_size: int):
        super().__init__(name="memory")
        self._rows, self._length = rows, length

        def variable(name: str, *shape: int) -> tf.Variable:
            return tf.Variable(tf.zeros([rows, length, *shape]), trainable=False, name=name)

        self.states = [variable(f"block_{index}", hidden_size) for index in range(blocks)]
        self.is_token = variable("is_token")
        self.batch_number = tf.Variable(-1, trainable=False, dtype=tf.int64, name="batch_number")

    def with_memory(self, batch: dict[str, tf.Tensor], replica: int | tf.Tensor) -> dict[str, tf.Tensor]:
        """A replica's batch with `mems` and `mems_mask` for the encoder.

        A row sees no memory if it does not continue the batch before, or follows batches that a rollback left out.
        """
        size = batch["input_mask"].shape[0]

        def own(variable: tf.Variable) -> tf.Tensor:
            # Within bounds, because the batches of an estimate may have more rows.
            return tf.gather(variable, tf.minimum(replica * size + tf.range(size), self._rows - 1))

        numbers = tf.cast(batch["batch_numbers"], tf.int64)
        follows = (batch["goes_on"] > 0) & (numbers == self.batch_number + 1)
        seen = tf.where(follows[:, None], own(self.is_token), 0.0)
        return {**batch, "mems": [own(states) for states in self.states], "mems_mask": seen}

    def of_rows(
        self, outputs: dict[str, Any], batch: dict[str, tf.Tensor], part: int | tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The next values of the variables for some rows, zero at all others, so that the values of all parts add up.

        Args:
            outputs: the model's, with `hidden_states`, the embeddings' output and then each block's: [part's rows,
                seq, hidden].
            batch: these rows, as `with_memory` returned them.
            part: which part of the global batch they are.
        """
        mask = tf.cast(batch["input_mask"], tf.float32)
        size, ends = mask.shape[0], tf.reduce_sum(batch["input_mask"], axis=1) - _AFTER_TEXT
        places = ends[:, None] + tf.range(self._length)  # In the memory and, after it, the row.
        rows = tf.range(self._rows) - part * size
        is_own, rows = (rows >= 0) & (rows < size), tf.clip_by_value(rows, 0, size - 1)

        def kept(before: tf.Tensor, row: tf.Tensor) -> tf.Tensor:
            both = tf.concat([before, tf.cast(row, tf.float32)], axis=1)
            kept = tf.gather(tf.gather(both, places, batch_dims=1), rows)
            return tf.where(tf.reshape(is_own, [-1, *[1] * (len(kept.shape) - 1)]), kept, 0.0)

        states = {str(index): kept(*pair) for index, pair in enumerate(zip(batch["mems"], outputs["hidden_states"]))}
        return {**states, "is_token": kept(batch["mems_mask"], mask)}

    def remember(self, rows: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> None:
        """Replaces the memory with the sum of what `of_rows` returned for all parts, in the context of a replica."""
        for index, states in enumerate(self.states):
            states.assign(rows[str(index)])
        self.is_token.assign(rows["is_token"])
        self.batch_number.assign(tf.cast(batch["batch_numbers"][0], tf.int64))
