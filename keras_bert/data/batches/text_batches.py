"""Batches of masked examples from raw text, in one `tf.data` graph, for text that cannot be prepared."""

import sys

import numpy as np
import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.masking import example_keys, non_negative, random_bits
from keras_bert.data.batches.packing import PaddedRows, assemble_rows, most_documents, with_segment_of_cls
from keras_bert.data.batches.plans import SPECIAL_TOKENS_OF_A_PAIR
from keras_bert.data.batches.predictions import make_predictions
from keras_bert.data.batches.raw_lines import RawLines, split_lines
from keras_bert.data.batches.related_texts import PairMaker
from keras_bert.data.batches.text_plans import pack_sentences, pair_sentences, relate_sentences
from keras_bert.models.term import RANDOM_NEXT, RELATED, Rows
from keras_bert.text.tokenizers import Tokenizer

_ROWS_SHUFFLED_AT_ONCE, _ROWS_MASKED_AT_ONCE = 8192, 512
# Indices in an example's random sequence that its mask does not use.
_ROW_ORDER, _FILE_ORDER = 2**20, 2**21
# How many chunks of lines have their documents paired with each other, to be divided by the side's share of the text;
# and the smallest share that counts, which keeps the chunks from filling the memory.
_CHUNKS_PAIRED_AT_ONCE, _SMALLEST_SHARE = 4, 0.002
_PAIRS_SEED = 2**32  # Apart from the seeds of masks, which have 32 bits.


class TextBatches:
    """Reads `RawLines` as batches for pretraining, tokenized, packed, shuffled and masked during the run.

    The order of the files is a function of (seed, epoch); rows are shuffled within blocks of 8,192 by (seed, epoch,
    row), and a row's mask is a function of (seed, epoch, row) too. A row does not extend beyond the lines that are
    tokenized together. Bytes that are not UTF-8 are dropped, as by the tokenizer.

    Segment pairs are planned for parts of about four megabytes of a side's text, as a function of (seed, epoch, number
    of the part). Random next sentences come from the same part, so a part that is a single document has none. Without
    `refresh`, every epoch reads the files in the order of the first epoch.

    All epochs form one stream, because their length is not known before they are read; `batches_per_epoch` is
    unlimited. To start at a later batch, the rows of all earlier ones are read again, without masking them: the batches
    are the same, but getting there takes time.

    The batches are like those of `ShardBatches`; whole words are recognized by the vocabulary's "##".

    Attributes:
        widths: the only sequence length of the batches, in a tuple.
        padding_share, next_share: share of padding in the first rows that are planned, and of pairs with label 0 among
            them; the latter is None without pairs.

    Args:
        phase: its sequence length, batch size and predictions are used.
        objective: pairs or packed rows, and what is predicted of them.
        validation: whether to read the held-out documents or the others.
        decoder_start: as for `make_predictions`.

    Raises:
        UserError: there is no text to read, or for random next sentences no two documents are read together.
    """

    batches_per_epoch: int = sys.maxsize
    examples_per_epoch: None = None

    def __init__(
        self,
        lines: RawLines,
        tokenizer: Tokenizer,
        phase: PhaseConfig,
        objective: ObjectiveConfig,
        masking: MaskingConfig,
        seed: int,
        validation: bool = False,
        decoder_start: int | None = None,
    ):
        self._lines = lines
        self._tokenizer = tokenizer
        self._phase = phase
        self._pairing = objective.pairing
        self._documents_in_row = most_documents(objective.packing, phase.sequence_length)
        self._fills = objective.packing == "filled"
        self._objective = objective
        self._refreshes = masking.refresh == "epoch"
        self._predict = make_predictions(
            objective, masking, phase.max_predictions_per_seq, tokenizer.vocabulary, seed, decoder_start=decoder_start
        )
        self._make_pairs = PairMaker(tokenizer.vocabulary, seed) if self._pairing == RELATED else None
        self._seed = seed
        self.widths = (phase.sequence_length,)
        self._validation = validation
        first = next(iter(self._rows().filter(lambda word_ids, *rest: tf.shape(word_ids)[0] > 0).take(1)), None)
        if first is None:
            lines.require_text(validation)
            side = "validation" if validation else "training"
            raise UserError(f"{lines.names}: needs text for {side}. Received: none with a token. Give more documents.")
        self.padding_share = 1.0 - float(tf.reduce_mean(tf.cast(first[1], tf.float64))) / phase.sequence_length
        self.next_share = float(tf.reduce_mean(tf.cast(first[3][:, 1] == 0, tf.float64))) if self._pairing else None
        if self._pairing == RANDOM_NEXT and objective.random_next_share > 0:
            self._require_two_documents()

    def remove_epoch(self, epoch: int) -> None:
        """Does nothing: an epoch leaves no files behind."""

    @tf.autograph.experimental.do_not_convert  # AutoGraph would search for control flow for seconds; there is none.
    def epoch(self, epoch: int, first_batch: int = 0) -> tf.data.Dataset:
        """The endless stream of batches from `first_batch` on; `epoch` must be 0, which contains all epochs."""
        if epoch != 0:
            raise ValueError(f"epoch: needs 0, the stream of all epochs. Received: {epoch}.")
        rows = tf.data.Dataset.range(2**31).flat_map(self._shuffled_rows)
        # Not in batches yet: TensorFlow logs an error for each one that becomes part of a larger block.
        skipped, rest = divmod(first_batch * self._phase.batch_size, _ROWS_MASKED_AT_ONCE)
        blocks = rows.rebatch(_ROWS_MASKED_AT_ONCE).skip(skipped)

        def without_skipped(number: tf.Tensor, rows: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
            first = tf.where(number == 0, tf.constant(rest, tf.int64), 0)
            return tuple(values[first:] for values in rows)

        return self._masked(blocks.enumerate().map(without_skipped) if rest else blocks)

    @tf.autograph.experimental.do_not_convert
    def all_batches(self) -> tf.data.Dataset:
        """Batches with every row of the text, in order; empty rows complete the last batch."""
        rows = self._rows().map(
            lambda word_ids, lengths, ids, *pairs: (word_ids, lengths, ids, tf.zeros_like(ids), *pairs)
        )
        batches_at_once = max(_ROWS_MASKED_AT_ONCE // self._phase.batch_size, 1)
        return self._masked(rows.rebatch(batches_at_once * self._phase.batch_size).map(self._fill))

    @tf.autograph.experimental.do_not_convert
    def _rows(self, epoch: tf.Tensor | int = 0, order: tf.Tensor | None = None) -> tf.data.Dataset:
        """Blocks of (word ids [n, seq], lengths [n], ids [n]) and, for pairs, int32 [n, 2].

        The latter are the second segment's start and the label. The ids of packed rows are the same in every epoch.
        """
        chunks = self._lines.chunks(self._validation, order)
        if not self._pairing:
            return chunks.map(self._pack, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)

        def pair(number: tf.Tensor, parts: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
            return self._pair(epoch, number, *parts)

        parts = self._parts(chunks).enumerate()
        return parts.map(pair, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)

    def _tokenize(
        self, chunk: tf.Tensor, lines: tf.Tensor, documents: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return (the chunk's number; ids [tokens]; sentence lengths, int64 [sentences]; documents [sentences])."""
        sentences, line = split_lines(lines)
        pieces = self._tokenizer.tokenize(sentences)
        return chunk, pieces.values, pieces.row_lengths(), tf.gather(documents, line)

    def _pack(self, chunk: tf.Tensor, lines: tf.Tensor, documents: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The packed rows of a chunk, as a block of `_rows`."""
        _, tokens, sentence_lengths, documents = self._tokenize(chunk, lines, documents)
        sequence_length = self._phase.sequence_length
        spans = pack_sentences(sentence_lengths, documents, sequence_length, self._documents_in_row, self._fills)
        rows = assemble_rows(tokens, spans, sequence_length, self._tokenizer.vocabulary)
        ids = chunk * 2**20 + tf.range(tf.shape(spans, tf.int64)[0])
        return rows.word_ids, rows.lengths, ids

    def _parts(self, chunks: tf.data.Dataset) -> tf.data.Dataset:
        """Ragged batches of the results of `_tokenize`, each with about four megabytes of this side."""
        share = self._lines.validation_share if self._validation else 1.0 - self._lines.validation_share
        tokenized = chunks.map(self._tokenize, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        return tokenized.ragged_batch(round(_CHUNKS_PAIRED_AT_ONCE / max(share, _SMALLEST_SHARE)))

    def _pair(
        self,
        epoch: tf.Tensor | int,
        number: tf.Tensor,
        chunk: tf.Tensor,
        tokens: tf.RaggedTensor,
        sentence_lengths: tf.RaggedTensor,
        documents: tf.RaggedTensor,
    ) -> tuple[tf.Tensor, ...]:
        """The pairs of a part of an epoch, as a block of `_rows`."""
        order = tf.argsort(chunk)  # So that a document's chunks follow each other, as they do in its file.
        tokens, sentence_lengths, documents = (
            tf.gather(values, order).values for values in (tokens, sentence_lengths, documents)
        )
        sequence_length = self._phase.sequence_length
        key = example_keys(self._seed + _PAIRS_SEED, epoch, number[None])
        max_tokens = sequence_length - SPECIAL_TOKENS_OF_A_PAIR
        plan = relate_sentences if self._pairing == RELATED else pair_sentences
        spans, labels = plan(sentence_lengths, documents, max_tokens, self._objective, key)
        rows = assemble_rows(tokens, spans, sequence_length, self._tokenizer.vocabulary)
        before = len(self._tokenizer.vocabulary.row_pattern.start)
        second = before + tf.cast(spans[:, 1] - spans[:, 0], tf.int32) + 1  # After the first [SEP].
        ids = number * 2**32 + tf.range(tf.size(labels, tf.int64))
        return rows.word_ids, rows.lengths, ids, tf.stack([second, labels], axis=1)

    def _require_two_documents(self) -> None:
        """Raises `UserError` unless some part of the text has two documents; reads all of it only if none has."""
        for _, _, _, documents in self._parts(self._lines.chunks(self._validation)):
            if len(np.unique(documents.values)) > 1:
                return
        side = "validation" if self._validation else "training"
        raise UserError(
            f"{self._lines.names}: needs two documents for {side} that are read together, for random next sentences. "
            "Received: single ones. Put blank lines between documents, give more of them or smaller ones, or set "
            "objective.random_next_share=0."
        )

    def _shuffled_rows(self, epoch: tf.Tensor) -> tf.data.Dataset:
        """`_rows` in the order of an epoch, with the epoch [n] of each row."""
        sources = tf.range(self._lines.sources, dtype=tf.int64)
        # The order of the files decides which documents are read together, and so the pairs.
        epoch_of_files = tf.zeros_like(epoch) if self._pairing and not self._refreshes else epoch
        blocks = self._rows(epoch_of_files, tf.gather(sources, self._order(epoch_of_files, sources, _FILE_ORDER)))

        def shuffle(*rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            order = self._order(epoch, rows[2], _ROW_ORDER)
            word_ids, lengths, ids, *pairs = (tf.gather(values, order) for values in rows)
            return (word_ids, lengths, ids, tf.fill(tf.shape(ids), epoch), *pairs)

        return blocks.rebatch(_ROWS_SHUFFLED_AT_ONCE).map(shuffle)

    def _order(self, epoch: tf.Tensor, ids: tf.Tensor, stream: int) -> tf.Tensor:
        """A permutation of [n] that is a function of (seed, epoch, ids)."""
        bits = random_bits(example_keys(self._seed, epoch, ids), tf.constant([[stream]]))[:, 0]
        return tf.argsort(non_negative(bits))

    def _fill(
        self, word_ids: tf.Tensor, lengths: tf.Tensor, ids: tf.Tensor, epochs: tf.Tensor, *pairs: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """Adds rows of [CLS] alone up to whole batches; they are recognized by their length of 1."""
        missing = -tf.size(ids) % self._phase.batch_size
        empty = tf.one_hot(tf.zeros([missing], tf.int32), self._phase.sequence_length, dtype=tf.int32)
        word_ids = tf.concat([word_ids, empty * self._tokenizer.vocabulary.cls_id], axis=0)
        lengths = tf.concat([lengths, tf.ones([missing], tf.int32)], axis=0)
        no_pairs = [tf.pad(values, [[0, missing], [0, 0]]) for values in pairs]
        return (word_ids, lengths, tf.pad(ids, [[0, missing]]), tf.pad(epochs, [[0, missing]]), *no_pairs)

    def _masked(self, blocks: tf.data.Dataset) -> tf.data.Dataset:
        """The batches of blocks of rows, of any size: together they are masked faster than batch by batch."""
        options = tf.data.Options()
        options.deterministic = True
        # Makes the first batches as soon as an iterator is created, not at its first `next`.
        options.experimental_warm_start = True
        rows = blocks.map(self._mask, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        batches = rows.rebatch(self._phase.batch_size, drop_remainder=True)
        return batches.with_options(options).prefetch(tf.data.AUTOTUNE)

    def _mask(
        self, word_ids: tf.Tensor, lengths: tf.Tensor, ids: tf.Tensor, epochs: tf.Tensor, pairs: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        sequence_length = self._phase.sequence_length
        word_ids = tf.ensure_shape(word_ids, [None, sequence_length])
        segment_ids, labels, shared = tf.zeros_like(word_ids), tf.zeros_like(lengths), None
        if pairs is not None:
            second, labels = pairs[:, :1], pairs[:, 1]
            places = tf.range(sequence_length)[None, :]
            # A row that only fills the batch has no second segment, and 0 for its start.
            is_second = (places >= second) & (places < lengths[:, None]) & (second > 0)
            segment_ids = tf.cast(is_second, tf.int32)
        epochs = epochs if self._refreshes else 0
        if self._make_pairs is not None:
            rows = PaddedRows(word_ids, lengths, segment_ids, tf.zeros_like(word_ids))
            (word_ids, lengths, segment_ids, _), shared = self._make_pairs(rows, labels, ids, epochs)
        batches = {
            "input_mask": tf.sequence_mask(lengths, sequence_length, tf.int32),
            "input_type_ids": with_segment_of_cls(segment_ids, lengths, self._tokenizer.vocabulary),
            "example_weights": tf.cast(lengths > 1, tf.float32),
            **self._predict(word_ids, lengths, ids, epochs),
        }
        unmasked = Rows(word_ids, lengths, segment_ids, labels, shared)
        for term in self._objective.trained:
            batches.update(term.features(unmasked))
        return batches
