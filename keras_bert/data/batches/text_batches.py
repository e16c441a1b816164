"""Batches of masked examples from raw text, in one `tf.data` graph, for text that cannot be prepared."""

import sys

import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.assembly import PREDICTIONS, assemble_rows
from keras_bert.data.batches.masking import DynamicMasking, example_keys, non_negative, random_bits
from keras_bert.data.batches.packing import most_documents
from keras_bert.data.batches.raw_lines import RawLines, pack_sentences, split_lines
from keras_bert.models.term import Rows
from keras_bert.text.tokenizers import Tokenizer

_ROWS_SHUFFLED_AT_ONCE, _ROWS_MASKED_AT_ONCE = 8192, 512
# Indices in an example's random sequence that its mask does not use.
_ROW_ORDER, _FILE_ORDER = 2**20, 2**21


class TextBatches:
    """Reads `RawLines` as batches for pretraining, tokenized, packed, shuffled and masked during the run.

    The order of the files is a function of (seed, epoch); rows are shuffled within blocks of 8,192 by (seed, epoch,
    row), and a row's mask is a function of (seed, epoch, row) too. A row does not extend beyond the lines that are
    tokenized together. Bytes that are not UTF-8 are dropped, as by the tokenizer.

    All epochs form one stream, because their length is not known before they are read; `batches_per_epoch` is
    unlimited. To start at a later batch, the rows of all earlier ones are read again, without masking them: the batches
    are the same, but getting there takes time.

    The batches are like those of `ShardBatches` with packed rows; whole words are recognized by the vocabulary's "##".

    Attributes:
        batches_per_epoch: `sys.maxsize`.
        examples_per_epoch, next_share: None, not known here.
        widths: the only sequence length of the batches, in a tuple.
        padding_share: share of padding in the rows of the first chunk of lines that has any rows.

    Args:
        lines: the text.
        tokenizer: the tokenizer.
        phase: its sequence length, batch size and predictions are used.
        objective: its `packing` and `tokens` are used.
        masking: what to mask.
        seed: at least 0.
        validation: whether to read the held-out documents or the others.

    Raises:
        UserError: there is no text to read.
    """

    batches_per_epoch: int = sys.maxsize
    examples_per_epoch: None = None
    next_share: None = None
    widths: tuple[int, ...]
    padding_share: float

    def __init__(
        self,
        lines: RawLines,
        tokenizer: Tokenizer,
        phase: PhaseConfig,
        objective: ObjectiveConfig,
        masking: MaskingConfig,
        seed: int,
        validation: bool = False,
    ):
        self._lines = lines
        self._tokenizer = tokenizer
        self._phase = phase
        self._documents_in_row = most_documents(objective.packing, phase.sequence_length)
        self._fills = objective.packing == "filled"
        self._objective = objective
        self._predictions = PREDICTIONS.get(objective.tokens)
        self._refreshes = masking.refresh == "epoch"
        self._masking = DynamicMasking(masking, phase.max_predictions_per_seq, tokenizer.vocabulary, seed)
        self._seed = seed
        self.widths = (phase.sequence_length,)
        self._validation = validation
        first = next(iter(self._rows().filter(lambda word_ids, lengths, ids: tf.size(ids) > 0).take(1)), None)
        if first is None:
            lines.require_text(validation)
            side = "validation" if validation else "training"
            raise UserError(f"{lines.names}: needs text for {side}. Received: none with a token. Give more documents.")
        self.padding_share = 1.0 - float(tf.reduce_mean(tf.cast(first[1], tf.float64))) / phase.sequence_length

    def remove_epoch(self, epoch: int) -> None:
        """Does nothing: an epoch leaves no files behind."""

    @tf.autograph.experimental.do_not_convert  # AutoGraph would search for control flow for seconds; there is none.
    def epoch(self, epoch: int, first_batch: int = 0) -> tf.data.Dataset:
        """The endless stream of batches from `first_batch` on; `epoch` must be 0, which contains all epochs."""
        if epoch != 0:
            raise ValueError(f"epoch: needs 0, the stream of all epochs. Received: {epoch}.")
        rows = tf.data.Dataset.range(2**31).flat_map(self._shuffled_rows)
        batches = rows.rebatch(self._phase.batch_size, drop_remainder=True).skip(first_batch)
        return self._masked(batches)

    @tf.autograph.experimental.do_not_convert
    def all_batches(self) -> tf.data.Dataset:
        """Batches with every row of the text, in order; empty rows complete the last batch."""
        rows = self._rows().map(lambda *row: (*row, tf.zeros_like(row[-1])))
        return self._masked(rows.rebatch(self._phase.batch_size).map(self._fill))

    @tf.autograph.experimental.do_not_convert
    def _rows(self, order: tf.Tensor | None = None) -> tf.data.Dataset:
        """Blocks of (word ids [n, seq], lengths [n], ids [n]); an id is the same in every epoch."""
        chunks = self._lines.chunks(self._validation, order)
        return chunks.map(self._pack, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)

    def _pack(self, chunk: tf.Tensor, lines: tf.Tensor, documents: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        sentences, line = split_lines(lines)
        pieces = self._tokenizer(sentences)
        sequence_length = self._phase.sequence_length
        spans = pack_sentences(
            pieces.row_lengths(), tf.gather(documents, line), sequence_length, self._documents_in_row, self._fills
        )
        rows = assemble_rows(pieces.values, spans, sequence_length, self._tokenizer.vocabulary)
        ids = chunk * 2**20 + tf.range(tf.shape(spans, tf.int64)[0])
        return rows.word_ids, rows.lengths, ids

    def _shuffled_rows(self, epoch: tf.Tensor) -> tf.data.Dataset:
        """`_rows` in the order of an epoch, with the epoch [n] of each row."""
        sources = tf.range(self._lines.sources, dtype=tf.int64)
        blocks = self._rows(tf.gather(sources, self._order(epoch, sources, _FILE_ORDER)))

        def shuffle(word_ids: tf.RaggedTensor, lengths: tf.Tensor, ids: tf.Tensor) -> tuple[tf.Tensor, ...]:
            order = self._order(epoch, ids, _ROW_ORDER)
            rows = tuple(tf.gather(values, order) for values in (word_ids, lengths, ids))
            return (*rows, tf.fill(tf.shape(ids), epoch))

        return blocks.rebatch(_ROWS_SHUFFLED_AT_ONCE).map(shuffle)

    def _order(self, epoch: tf.Tensor, ids: tf.Tensor, stream: int) -> tf.Tensor:
        """A permutation of [n] that is a function of (seed, epoch, ids)."""
        bits = random_bits(example_keys(self._seed, epoch, ids), tf.constant([[stream]]))[:, 0]
        return tf.argsort(non_negative(bits))

    def _fill(
        self, word_ids: tf.Tensor, lengths: tf.Tensor, ids: tf.Tensor, epochs: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """Adds rows of [CLS] alone up to the batch size; they are recognized by their length of 1."""
        missing = self._phase.batch_size - tf.size(ids)
        empty = tf.one_hot(tf.zeros([missing], tf.int32), self._phase.sequence_length, dtype=tf.int32)
        word_ids = tf.concat([word_ids, empty * self._tokenizer.vocabulary.cls_id], axis=0)
        lengths = tf.concat([lengths, tf.ones([missing], tf.int32)], axis=0)
        return word_ids, lengths, tf.pad(ids, [[0, missing]]), tf.pad(epochs, [[0, missing]])

    def _masked(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        options = tf.data.Options()
        options.deterministic = True
        # Makes the first batches as soon as an iterator is created, not at its first `next`.
        options.experimental_warm_start = True
        rows = batches.rebatch(_ROWS_MASKED_AT_ONCE)
        rows = rows.map(self._mask, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        batches = rows.rebatch(self._phase.batch_size, drop_remainder=True)
        return batches.with_options(options).prefetch(tf.data.AUTOTUNE)

    def _mask(self, word_ids: tf.Tensor, lengths: tf.Tensor, ids: tf.Tensor, epochs: tf.Tensor) -> dict[str, tf.Tensor]:
        sequence_length = self._phase.sequence_length
        word_ids = tf.ensure_shape(word_ids, [None, sequence_length])
        segment_ids = tf.zeros_like(word_ids)
        batches = {
            **(
                self._predictions(word_ids, lengths, self._tokenizer.vocabulary)
                if self._predictions
                else self._masking(word_ids, lengths, ids, epochs if self._refreshes else 0)
            ),
            "input_mask": tf.sequence_mask(lengths, sequence_length, tf.int32),
            "input_type_ids": segment_ids,
            "example_weights": tf.cast(lengths > 1, tf.float32),
        }
        unmasked = Rows(word_ids, lengths, segment_ids, tf.zeros_like(lengths))
        for term in self._objective.trained:
            batches.update(term.features(unmasked))
        return batches
