"""Batches of masked examples from shards, starting at any batch of any epoch by arithmetic."""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.core.errors import TooLittleText, UserError
from keras_bert.data.batches.packing import assemble_rows, with_segment_of_cls
from keras_bert.data.batches.plans import Plans
from keras_bert.data.batches.predictions import make_predictions
from keras_bert.data.batches.related_texts import PairMaker
from keras_bert.data.corpus.held_out import TRAIN, VALIDATION
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.data.shards.shard_format import check_vocabulary
from keras_bert.models.term import RANDOM_NEXT, RELATED, Rows
from keras_bert.text.vocabulary import Vocabulary

_ROWS_AT_ONCE = 512
_SHARDS_STREAM, _GROUPS_STREAM, _ROWS_STREAM = 11, 12, 13


class ShardBatches:
    """Reads a shard set as batches for pretraining.

    The seed decides how shards are grouped. An epoch visits the groups, and the examples of a group, in an order that
    is a function of (seed, epoch); each group is read once and held in memory. Every planned example occurs at most
    once per epoch. The last examples of a group, too few for a batch, are left out; they differ between epochs.

    With `masking.refresh` "never", every epoch has the pairs and masks of epoch 0, in another order.

    With `objective.memory_length`, the examples of a group keep their order, from a random one on, and are divided into
    as many stretches as a batch has rows: row i of a batch is the example after row i of the previous batch.

    A batch is a dict of tensors with static shapes:
        input_word_ids, input_mask, input_type_ids: int32 [batch, seq]; [CLS] A [SEP] in segment 0 and B [SEP] in
            segment 1, or [CLS] and the packed sentences of each document with its [SEP], all in segment 0. An XLNet's
            <cls> is a row's last token, in segment 2.
        masked_lm_positions, masked_lm_ids: int32 [batch, max_predictions_per_seq].
        masked_lm_weights: float32 [batch, max_predictions_per_seq], 1 for a prediction, 0 for padding.
        permutation_ranks: int32 [batch, seq], see `Permutations`; in addition for `objective.tokens: permuted`.
        next_token_ids, next_token_weights: [batch, seq], see `next_tokens`; instead of `masked_lm_…` for
            `objective.tokens: next`; for `both` also previous_token_ids, previous_token_weights; for `decoded` what a
            `Corruption` returns.
        what the terms of the objective add (`Term.features`), such as next_sentence_labels int32 [batch], 0 if B
            follows A, 1 if it is from another document.
        example_weights: float32 [batch], 1 for an example, 0 for a row that only fills the batch.
        goes_on: int32 [batch], for `objective.memory_length`, 1 if a row continues the document of the same row in the
            previous batch, 0 if not.
        batch_numbers: int64 [batch], also for `objective.memory_length`, the batch's number over all epochs; the same
            in all rows.

    Attributes:
        examples_per_epoch: how many examples are planned.
        widths: the only sequence length of the batches, in a tuple.
        padding_share: share of padding among the positions of epoch 0.
        next_share: share of pairs with label 0, "B follows A", in epoch 0; None without pairs.

    Args:
        phase: its sequence length, batch size and predictions are used.
        objective: pairs or packed rows, and what is predicted of them.
        plans_folder: folder for the plan files (see `Plans`); missing ones of epoch 0 are created at once.
        shards_per_group: the most shards in a group, unless a group would then have fewer examples than a batch.
        token_counts: as for `DynamicMasking`.
        side: `held_out.TRAIN` or `VALIDATION`, for the messages.
        decoder_start, collocations: as for `make_predictions`.

    Raises:
        UserError: the shards have another vocabulary, no examples or, to mask phrases, no marks of them; or random next
            sentences are needed and no shard has two documents.
    """

    def __init__(
        self,
        shards: ShardSet,
        vocabulary: Vocabulary,
        phase: PhaseConfig,
        objective: ObjectiveConfig,
        masking: MaskingConfig,
        seed: int,
        plans_folder: str,
        shards_per_group: int = 4,
        token_counts: npt.NDArray[np.integer] | None = None,
        side: str = TRAIN,
        decoder_start: int | None = None,
        collocations: Sequence[Sequence[int]] | None = None,
    ):
        self._shards = shards
        self._vocabulary = vocabulary
        self._phase = phase
        self._seed = seed
        self.widths = (phase.sequence_length,)
        self._objective = objective
        self._refreshes = masking.refresh == "epoch"
        self._predict = make_predictions(
            objective,
            masking,
            phase.max_predictions_per_seq,
            vocabulary,
            seed,
            token_counts,
            decoder_start,
            collocations,
        )
        self._make_pairs = PairMaker(vocabulary, seed) if objective.pairing == RELATED else None
        uses_words = self._make_pairs is not None or masking.unit != "token" and objective.masks_tokens
        self._uses_word_marks = uses_words and shards.has_word_marks
        self._uses_phrase_marks = masking.unit == "phrase" and objective.masks_tokens
        if self._uses_phrase_marks and not shards.has_phrase_marks:
            raise UserError(
                f"{shards.folder}: needs marks of phrases to mask phrases. Received: none. Run `prepare` with "
                "--phrases or --phrase-tags, give raw text and data.phrases, or choose another masking.unit."
            )
        check_vocabulary(shards.folder, shards.meta, vocabulary)
        if objective.pairing == RANDOM_NEXT and objective.random_next_share > 0:
            _require_two_documents(shards, side)
        self._plans = Plans(plans_folder, shards, phase.sequence_length, objective, seed)
        self._plans_lock = threading.Lock()
        # Traced once for all epochs.
        self._load_traced = tf.function(self._load, autograph=False)
        self._batches_traced = tf.function(self._batches, autograph=False)
        self._counts = np.array(self._plans.counts, np.int64)
        self.examples_per_epoch = int(self._counts.sum())
        self.padding_share = self._plans.padding_share
        self.next_share = self._plans.next_share if objective.pairing else None
        if self.examples_per_epoch == 0:
            raise TooLittleText(
                f"{shards.folder}: needs a document with at least two tokens. Received: none. Give more text."
            )
        self._groups = _group_shards(self._counts, shards_per_group, phase.batch_size, seed)
        self._group_sizes = np.array([self._counts[group].sum() for group in self._groups])

    @property
    def batches_per_epoch(self) -> int:
        """The full batches of an epoch. Raises `TooLittleText` if there are too few examples for one."""
        batches = int((self._group_sizes // self._phase.batch_size).sum())
        if batches == 0:
            raise TooLittleText(
                f"{self._shards.folder}: needs at least batch_size ({self._phase.batch_size}) examples. "
                f"Received: {self.examples_per_epoch}. Lower the batch_size of the recipe's phases, or give more text."
            )
        return batches

    def prepare_epoch(self, epoch: int) -> None:
        """Writes the missing plan files of an epoch; can be called from another thread."""
        with self._plans_lock:
            self._plans.prepare(self._content_epoch(epoch))

    def remove_epoch(self, epoch: int) -> None:
        """Deletes the plan files of a finished epoch, unless other epochs need them."""
        self._plans.remove(self._content_epoch(epoch))

    def epoch(self, epoch: int, first_batch: int = 0) -> tf.data.Dataset:
        """The batches `first_batch`, `first_batch + 1`, ... of an epoch."""
        if not 0 <= first_batch <= self.batches_per_epoch:
            raise ValueError(f"first_batch: needs 0 to {self.batches_per_epoch}. Received: {first_batch}.")
        return self._dataset(epoch, first_batch, lambda size: size // self._phase.batch_size)

    def all_batches(self) -> tf.data.Dataset:
        """Batches with every example of epoch 0; empty rows complete the last batch of each group."""
        return self._dataset(0, 0, lambda size: -(-size // self._phase.batch_size))

    def _content_epoch(self, epoch: int) -> int:
        return epoch if self._refreshes else 0

    @tf.autograph.experimental.do_not_convert  # AutoGraph would search for control flow for seconds; there is none.
    def _dataset(self, epoch: int, first_batch: int, batches_of: Callable[[np.ndarray], np.ndarray]) -> tf.data.Dataset:
        self.prepare_epoch(epoch)
        order = self._rng(_GROUPS_STREAM, epoch).permutation(len(self._groups))
        batches = batches_of(self._group_sizes[order])
        ends = np.cumsum(batches)
        # The remaining batches of each group; a group without any is never read.
        starts = np.clip(first_batch - (ends - batches), 0, batches)
        rows = [
            (group, *self._rng(_ROWS_STREAM, epoch, group).integers(2**31, size=2), start, stop, before)
            for group, start, stop, before in zip(order, starts, batches, epoch * ends[-1] + ends - batches)
            if start < stop
        ]
        visits = np.array(rows, np.int64).reshape(-1, 6)
        content_epoch = self._content_epoch(epoch)
        plan_paths = [self._plans.path(shard, content_epoch) for shard in range(len(self._counts))]

        def load(visit: tf.Tensor) -> tuple[_Group, tf.Tensor, tf.Tensor]:
            return self._load_traced(visit, tf.constant(plan_paths))

        def batches_of_group(group: _Group, start: tf.Tensor, stop: tf.Tensor) -> tf.data.Dataset:
            def batches_at(numbers: tf.Tensor) -> dict[str, tf.Tensor]:
                return self._batches_traced(numbers, group, tf.constant(content_epoch, tf.int64))

            # Makes several batches at once, because for a single one launching the ops costs more than computing them.
            numbers = tf.data.Dataset.range(start, stop).batch(-(-_ROWS_AT_ONCE // self._phase.batch_size))
            return numbers.map(batches_at, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True).unbatch()

        dataset = tf.data.Dataset.from_tensor_slices(visits).map(load).prefetch(1).flat_map(batches_of_group)
        options = tf.data.Options()
        options.deterministic = True
        # Makes the first batches as soon as an iterator is created, not at its first `next`.
        options.experimental_warm_start = True
        dataset = dataset.with_options(options).prefetch(tf.data.AUTOTUNE)
        return dataset.apply(tf.data.experimental.assert_cardinality(int(ends[-1]) - first_batch))

    def _rng(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence((self._seed, *stream)))

    def _load(self, visit: tf.Tensor, plan_paths: tf.Tensor) -> tuple["_Group", tf.Tensor, tf.Tensor]:
        """Reads a group and shuffles its examples: (`_Group`, first batch to read, one past the last)."""
        group, row_seed, start, stop = visit[0], visit[1:3], visit[3], visit[4]
        shards = tf.ragged.constant([group.tolist() for group in self._groups], dtype=tf.int32)[group]
        counts = tf.gather(self._counts, shards)
        # An example's id is its index among the examples of all shards, in the order of the shards.
        all_first_ids = np.cumsum(self._counts) - self._counts
        first_ids = tf.gather(all_first_ids, shards) - tf.cumsum(counts, exclusive=True)
        places = tf.range(tf.reduce_sum(counts))
        example_ids = tf.repeat(first_ids, counts) + places
        if self._objective.memory_length:
            order = _in_stretches(places, row_seed, self._phase.batch_size)
        else:
            order = tf.random.experimental.stateless_shuffle(places, row_seed, alg="philox")
        plan = tf.gather(self._read_plan(tf.gather(plan_paths, shards), shards, counts), order)
        word_marks = self._read_marks(shards, "continuations", self._uses_word_marks)
        phrase_marks = self._read_marks(shards, "phrases", self._uses_phrase_marks)
        marks, ids = (word_marks, phrase_marks), tf.gather(example_ids, order)
        return _Group(self._read_tokens(shards), *marks, plan, ids, visit[5]), start, stop

    def _read_tokens(self, shards: tf.Tensor) -> tf.Tensor:
        paths = [self._shards.path(name, "tokens") for name in self._shards.names]
        # decode_raw does not support uint32, and ids are far smaller than 2**31.
        dtype = {"uint16": tf.uint16, "uint32": tf.int32}[self._shards.meta["token_dtype"]]
        tokens = tf.io.decode_raw(tf.strings.reduce_join(_read_files(tf.gather(paths, shards))), dtype)
        vocab_size = len(self._vocabulary)
        message = f"{self._shards.folder}: needs ids below vocab_size ({vocab_size}). Run `prepare` again."
        largest = tf.cast(tf.reduce_max(tokens), tf.int32)
        with tf.control_dependencies([tf.debugging.assert_less(largest, vocab_size, message)]):
            return tf.identity(tokens)

    def _read_marks(self, shards: tf.Tensor, kind: str, are_used: bool) -> tf.Tensor:
        """uint8 [tokens], the marks of a kind; empty if they are not used."""
        if not are_used:
            return tf.zeros([0], tf.uint8)
        paths = [self._shards.path(name, kind) for name in self._shards.names]
        return tf.io.decode_raw(tf.strings.reduce_join(_read_files(tf.gather(paths, shards))), tf.uint8)

    def _read_plan(self, paths: tf.Tensor, shards: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
        """The plans of a group's shards, with spans in the tokens of the whole group: int64 [examples, columns].

        Columns that no example uses are dropped, because they would only slow down the assembly of rows.
        """
        # A .npy file is a header followed by the rows.
        row_bytes = tf.cast(counts * self._plans.columns * 4, tf.int32)
        rows = tf.strings.substr(_read_files(paths), -row_bytes, row_bytes)
        plan = tf.reshape(tf.io.decode_raw(tf.strings.reduce_join(rows), tf.int32), [-1, self._plans.columns])
        plan = tf.cast(tf.concat([plan[:, : 2 * self._plans.spans_used], plan[:, -1:]], axis=1), tf.int64)
        token_counts = np.array([shard["tokens"] for shard in self._shards.meta["shards"]], np.int64)
        first_tokens = tf.cumsum(tf.gather(token_counts, shards), exclusive=True)
        return tf.concat([plan[:, :-1] + tf.repeat(first_tokens, counts)[:, None], plan[:, -1:]], axis=1)

    def _batches(self, numbers: tf.Tensor, group: "_Group", epoch: tf.Tensor) -> dict[str, tf.Tensor]:
        """The batches with the numbers [n]: tensors [n, batch, ...]."""
        batch_size, sequence_length = self._phase.batch_size, self._phase.sequence_length
        places = numbers[:, None] * batch_size + tf.range(batch_size, dtype=tf.int64)
        places = tf.reshape(places, [-1])
        is_example = places < tf.shape(group.plan, tf.int64)[0]
        places = tf.where(is_example, places, 0)
        # A row that fills the batch is [CLS] alone: nothing to predict, but attention has a token to attend to.
        plan = tf.where(is_example[:, None], tf.gather(group.plan, places), 0)
        rows = assemble_rows(group.tokens, plan[:, :-1], sequence_length, self._vocabulary)
        example_ids, labels = tf.gather(group.example_ids, places), tf.cast(plan[:, -1], tf.int32)
        continuation = phrases = shared = None
        if self._make_pairs is not None:
            if self._uses_word_marks:
                continuation = tf.gather(group.word_marks, rows.sources) > 0
            rows, shared = self._make_pairs(rows, labels, example_ids, epoch, continuation)
        if self._uses_word_marks:
            continuation = tf.gather(group.word_marks, rows.sources) > 0
        if self._uses_phrase_marks:
            phrases = tf.cast(tf.gather(group.phrase_marks, rows.sources), tf.int32)
        segment_ids = rows.span_numbers if self._objective.pairing else tf.zeros_like(rows.span_numbers)
        batches = {
            "input_mask": tf.sequence_mask(rows.lengths, sequence_length, tf.int32),
            "input_type_ids": with_segment_of_cls(segment_ids, rows.lengths, self._vocabulary),
            "example_weights": tf.cast(is_example, tf.float32),
            **self._predict(rows.word_ids, rows.lengths, example_ids, epoch, continuation, phrases),
        }
        unmasked = Rows(rows.word_ids, rows.lengths, segment_ids, labels, shared)
        for term in self._objective.trained:
            batches.update(term.features(unmasked))
        if self._objective.memory_length:
            of_rows = tf.repeat(numbers, batch_size)
            # A group's first batch continues nothing.
            batches["goes_on"] = tf.where(of_rows > 0, tf.cast(plan[:, -1], tf.int32), 0)
            batches["batch_numbers"] = group.batches_before + of_rows
        return {name: tf.reshape(value, [-1, batch_size, *value.shape[1:]]) for name, value in batches.items()}


class _Group(NamedTuple):
    """Shards in memory.

    Attributes:
        tokens: [tokens].
        word_marks, phrase_marks: uint8 [tokens], or [0] if they are not used.
        plan: int64 [examples, columns].
        example_ids: int64 [examples].
        batches_before: int64 scalar, how many batches came before those of this group, in all epochs.
    """

    tokens: tf.Tensor
    word_marks: tf.Tensor
    phrase_marks: tf.Tensor
    plan: tf.Tensor
    example_ids: tf.Tensor
    batches_before: tf.Tensor


def _require_two_documents(shards: ShardSet, side: str) -> None:
    """Raises `UserError` if no shard has two documents, with the remedy that helps on this side."""
    documents = [shard["documents"] for shard in shards.meta["shards"]]
    if max(documents, default=0) >= 2:
        return
    if sum(documents) >= 2:
        remedy = "Raise data.shard_megabytes"
    elif side == VALIDATION:
        remedy = "Raise data.validation_share, put blank lines between documents, give more of them"
    else:
        remedy = "Put blank lines between documents, give more of them"
    raise UserError(
        f"{shards.folder}: needs a shard with two {side} documents for random next sentences. Received: "
        f"{sum(documents)} in {len(documents)} shards. {remedy}, or set objective.random_next_share=0."
    )


def _group_shards(counts: np.ndarray, shards_per_group: int, batch_size: int, seed: int) -> list[np.ndarray]:
    """Arrays of shard numbers: groups of equal size, give or take one; fewer groups if one would not fill a batch."""
    order = np.random.default_rng(np.random.SeedSequence((seed, _SHARDS_STREAM))).permutation(len(counts))
    for number in range(-(-len(counts) // shards_per_group), 0, -1):
        groups = np.array_split(order, number)
        if min(counts[group].sum() for group in groups) >= batch_size:
            break
    return groups


def _in_stretches(places: tf.Tensor, seed: tf.Tensor, batch_size: int) -> tf.Tensor:
    """The places [n] in their order, from a random one on, dealt to batches so that each row follows a stretch."""
    size = tf.size(places)
    first = tf.random.stateless_uniform([], seed, maxval=size, dtype=tf.int32, alg="philox")
    places = tf.roll(places, -first, axis=0)
    batches = size // batch_size
    dealt = tf.transpose(tf.reshape(places[: batches * batch_size], [batch_size, batches]))
    return tf.concat([tf.reshape(dealt, [-1]), places[batches * batch_size :]], axis=0)


def _read_files(paths: tf.Tensor) -> tf.Tensor:
    return tf.map_fn(tf.io.read_file, paths, fn_output_signature=tf.string)
