"""How many slices a batch is computed in, for `training.accumulation: auto`."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_bert.config.training import RunConfig
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import kind_of_config
from keras_bert.models.sizes import encoder_parts, head_parts, total
from keras_bert.training.cluster import worker_addresses, worker_index, workers_beside
from keras_bert.training.memory import memory_limit
from keras_bert.training.processes import gather, process_count, process_number
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.strategy import on_gpus

_log = logging.getLogger(__name__)

# The rest is for what the estimate leaves out: fragmentation, the input pipeline, another process that starts.
_USABLE_SHARE = 0.8
_WORTH_SLICING = 1.1
_BYTES_A_FLOAT = 4
_BYTES_A_HALF = 2  # Of what XLA keeps of the blocks on a GPU; elsewhere scores, softmax and gelu stay float32.
_PROCESS = 0.7 * 2**30  # Bytes of TensorFlow itself.
_COMMAND = 1.25 * 2**30  # Bytes that a whole command takes beside the step: text, the input pipeline, XLA's compiler.
# How many floats a step holds at its peak, fitted to measured steps: docs/performance.md#memory.
_PER_PARAMETER, _PER_UNIT, _PER_SCORE, _PER_LOGIT = 6, 7, 3, 3
_PER_FROZEN = 3  # Without moments, and with the gradient of one kernel at a time; see `training.lora_rank`.


@dataclasses.dataclass(frozen=True)
class BatchShape:
    """The largest batch of a phase.

    Attributes:
        batch_size: examples.
        length: tokens of a row.
        predictions: predicted tokens of a row.
        rows: rows of an example.
        read: tokens of a row whose last states are read; 0 for all.
    """

    batch_size: int
    length: int
    predictions: int = 0
    rows: int = 1
    read: int = 0


@dataclasses.dataclass(frozen=True)
class Companion:
    """Another model that a step computes: a generator or a teacher.

    Attributes:
        is_trained: True for a generator, which is trained too; False for a teacher.
        predicts: whether a teacher's logits are compared, or only its states. A generator's logits count as those of
            the trained model.
    """

    model: BertConfig
    is_trained: bool
    predicts: bool = False

    def memory(self, batch: BatchShape, in_half: bool) -> float:
        """What it adds to `step_memory`, in bytes; a teacher adds its weights, a single block and its logits."""
        if self.is_trained:
            own = dataclasses.replace(batch, predictions=0, read=min(batch.predictions + 1, batch.length))
            return step_memory(self.model, own, in_half=in_half) - _PROCESS
        block, _ = _block_floats(self.model, batch.length)
        logits = _PER_LOGIT * batch.predictions * self.model.vocab_size * self.predicts
        of_batch = batch.batch_size * batch.rows * (batch.length * block + logits)
        return _BYTES_A_FLOAT * (total(encoder_parts(self.model)) + of_batch)


def choose_accumulation(
    training: RunConfig,
    run: RunFolder,
    strategy: tf.distribute.Strategy,
    model: BertConfig,
    batches: Sequence[BatchShape],
    frozen: int = 0,
    companions: Sequence[Companion] = (),
) -> int:
    """The recipe's `training.accumulation` or, if it is `auto`, the fewest slices that should fit in memory.

    A run that has begun keeps its number, so that it continues bit for bit. On a TPU `auto` keeps batches whole: the
    memory of its chips is not known here. A collective.

    Args:
        frozen: how many weights LoRA leaves as they are.
    """
    if training.accumulation != "auto" or isinstance(strategy, tf.distribute.TPUStrategy):
        return training.slices
    replicas, memory = strategy.num_replicas_in_sync, _memory_of_a_replica(strategy)
    in_half = on_gpus(strategy) and training.precision != "float32" and training.jit_compile is True

    def needed_of(part: BatchShape) -> float:
        own = step_memory(model, part, training.recompute_every, frozen, in_half)
        return own + sum(companion.memory(part, in_half) for companion in companions)

    def needed(slices: int) -> float:
        parts = [dataclasses.replace(batch, batch_size=batch.batch_size // (replicas * slices)) for batch in batches]
        return _COMMAND + max(map(needed_of, parts))

    part = math.gcd(*(batch.batch_size for batch in batches)) // replicas
    choices = [slices for slices in range(1, part + 1) if part % slices == 0]
    # Where little is free, slicing must still be worth it: the batch takes little of a small model's memory.
    room = math.inf if memory is None else max(_USABLE_SHARE * memory, _WORTH_SLICING * needed(part))
    recorded = run.begun_training().get("accumulation") if process_number(strategy) == 0 else None
    begun = recorded if isinstance(recorded, int) else 0
    rows = gather(strategy, [begun, next(slices for slices in choices if needed(slices) <= room)])
    if (begun := int(rows[0, 0])) in choices:
        return begun
    chosen, batch_size = int(rows[:, 1].max()), max(batch.batch_size for batch in batches)
    if chosen > 1 and memory is not None:
        of = f"of {batch_size // (replicas * chosen)}" + (f" on each of {replicas} replicas" if replicas > 1 else "")
        used, there = f"{needed(chosen) / 2**30:.1f} GiB", f"{memory / 2**30:.1f} GiB"
        fits = f"about {used} of {there} of memory" + ("" if needed(chosen) <= memory else ", which is not enough")
        _log.info(f"Batches of {batch_size} in {chosen} slices {of}: {fits} (training.accumulation).")
    return chosen


def step_memory(
    model: BertConfig, batch: BatchShape, recompute_every: int = 0, frozen: int = 0, in_half: bool = False
) -> float:
    """The estimated peak memory of a process that trains on slices of this shape, in bytes.

    It holds weights, moments and gradients, what the backward pass needs of the blocks, and the logits of all
    predictions in several forms. For tokens that are not read, the last block keeps only its keys and values. A
    recomputed block keeps only its input, and `frozen` weights, which LoRA leaves as they are, have no moments. With
    `in_half`, what is kept of the blocks has half precision. A decoder's tokens are the predictions, and its blocks are
    taken to be as wide as the encoder's.
    """
    tokens, kind = batch.rows * batch.length, kind_of_config(model)
    # A task on an encoder alone predicts no tokens.
    parts = [*encoder_parts(model), *(head_parts(model) if batch.predictions else ())]
    heads = model.num_attention_heads * kind.scores_kept
    block, units = _block_floats(model, batch.length)
    recomputed = model.num_blocks // recompute_every if recompute_every else 0
    whole = model.num_blocks - recomputed + bool(recomputed)
    blocks = tokens * (whole * block + recomputed * model.hidden_size)
    if batch.read and not recomputed:  # The last block keeps only keys and values of tokens that are not read.
        blocks -= batch.rows * (batch.length - batch.read) * (block - 2 * model.hidden_size)
    if batch.predictions and kind.decodes:
        config: Any = model
        written = batch.rows * batch.predictions
        # The decoder's attention to the encoder's states has their keys and values, and its own queries.
        attention = _PER_UNIT * model.hidden_size * (written + tokens / 3)
        attention += _PER_SCORE * heads * written * (batch.predictions + batch.length)
        blocks += config.decoder_layers * (_PER_UNIT * units * written + attention)
    logits = _PER_LOGIT * batch.rows * batch.predictions * model.vocab_size
    parameters = _PER_PARAMETER * (total(parts) - frozen) + _PER_FROZEN * frozen
    kept = batch.batch_size * blocks * (_BYTES_A_HALF if in_half else _BYTES_A_FLOAT)
    return _PROCESS + kept + _BYTES_A_FLOAT * (parameters + batch.batch_size * logits)


def _block_floats(model: BertConfig, length: int) -> tuple[float, float]:
    """(floats that the backward pass needs of a block for each of `length` tokens, the units among them)."""
    kind = kind_of_config(model)
    units = model.hidden_size + kind.inner_kept(model) * model.intermediate_size / 2
    return _PER_UNIT * units + _PER_SCORE * model.num_attention_heads * kind.scores_kept * length, units


def memory_of_a_process(strategy: tf.distribute.Strategy) -> float | None:
    """Bytes of a GPU or, on CPUs, of this process's share of the machine's memory; None if unknown."""
    limit = memory_limit()
    if limit is None or on_gpus(strategy) or process_count(strategy) == 1:
        return limit
    return limit / len(workers_beside(worker_addresses(), worker_index()))


def _memory_of_a_replica(strategy: tf.distribute.Strategy) -> float | None:
    memory = memory_of_a_process(strategy)
    if memory is None or on_gpus(strategy):
        return memory
    return memory * process_count(strategy) / strategy.num_replicas_in_sync
