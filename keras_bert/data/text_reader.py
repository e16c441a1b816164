"""Batches of masked examples from raw text, in one `tf.data` graph: for text that cannot be prepared."""

import sys

import tensorflow as tf

from keras_bert.data.assembly import assemble_rows
from keras_bert.data.masking import DynamicMasking, example_keys, random_bits
from keras_bert.data.packing import most_documents
from keras_bert.data.text_packing import pack_sentences, split_lines
from keras_bert.errors import UserError

_ROWS_SHUFFLED_AT_ONCE, _ROWS_MASKED_AT_ONCE = 8192, 512
# Numbers of an example's random sequence that its mask does not use.
_ROW_ORDER, _FILE_ORDER = 2**20, 2**21


class TextReader:
    """Reads `RawLines` as batches for pretraining: tokenised, packed, shuffled and masked as the run goes.

    Files are visited in an order of (seed, epoch), rows are shuffled within 8,192 by (seed, epoch, row), and a row's
    mask depends on (seed, epoch, row) too. Rows do not go on over the 512 lines that are tokenised together. Bytes
    that are not UTF-8 are left out, as the tokenizer does.

    All epochs are one stream here, because their length is not known before they are read: `batches_per_epoch` is
    without bound. A start at a later batch makes the rows of all earlier ones again, without their masks, so it gives
    the same batches and takes its time.

    Batches are those of `ShardReader` with packed rows, whole words by the vocabulary's "##".

    Attributes:
        batches_per_epoch: `sys.maxsize`.
        examples_per_epoch, next_share: None, not known here.
        widths: the one sequence length of its batches, in a tuple.
        padding_share: share of padding in the rows of the first lines that have some.

    Args:
        lines: a `RawLines`.
        tokenizer: a `WordPieceTokenizer`.
        phase: a `PhaseConfig`; sequence length, batch size and predictions are used.
        objective: an `ObjectiveConfig`; its `packing` is used.
        masking: a `MaskingConfig`.
        seed: int, at least 0.
        validation: bool, which side's documents are read.

    Raises:
        UserError: that side has no text.
    """

    batches_per_epoch = sys.maxsize
    examples_per_epoch = next_share = None

    def __init__(self, lines, tokenizer, phase, objective, masking, seed, validation=False):
        self._lines = lines
        self._tokenizer = tokenizer
        self._phase = phase
        self._documents_in_row = most_documents(objective.packing, phase.sequence_length)
        self._refreshes = masking.refresh == "epoch"
        self._masking = DynamicMasking(masking, phase.max_predictions_per_seq, tokenizer.vocabulary, seed)
        self._seed = seed
        self.widths = (phase.sequence_length,)
        self._validation = validation
        first = next(iter(self._rows().filter(lambda word_ids, lengths, ids: tf.size(ids) > 0).take(1)), None)
        if first is None:
            side = "validation" if validation else "training"
            raise UserError(
                f"{lines.names}: needs text for {side}. Received: none. Give more documents, with blank lines between "
                "them, or another data.validation_share."
            )
        self.padding_share = 1.0 - float(tf.reduce_mean(tf.cast(first[1], tf.float64))) / phase.sequence_length

    def remove_epoch(self, epoch):
        """Nothing is kept of an epoch."""

    @tf.autograph.experimental.do_not_convert  # To look for control flow takes seconds, and there is none.
    def epoch(self, epoch, first_batch=0):
        """An endless `tf.data.Dataset` of the batches from `first_batch` on; `epoch` is 0, all epochs are in it."""
        if epoch != 0:
            raise ValueError(f"epoch: needs 0, the stream of all epochs. Received: {epoch}.")
        rows = tf.data.Dataset.range(2**31).flat_map(self._shuffled_rows)
        batches = rows.rebatch(self._phase.batch_size, drop_remainder=True).skip(first_batch)
        return self._masked(batches)

    @tf.autograph.experimental.do_not_convert
    def all_batches(self):
        """A `tf.data.Dataset` of every row of the text, in order; the last batch is filled with empty rows."""
        rows = self._rows().map(lambda *row: (*row, tf.zeros_like(row[-1])))
        return self._masked(rows.rebatch(self._phase.batch_size).map(self._fill))

    @tf.autograph.experimental.do_not_convert
    def _rows(self, order=None):
        """Blocks of (word ids [n, seq], lengths [n], ids [n]); an id is the same in every epoch."""
        chunks = self._lines.chunks(self._validation, order)
        return chunks.map(self._pack, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)

    def _pack(self, chunk, lines, documents):
        sentences, line = split_lines(lines)
        pieces = self._tokenizer(sentences)
        sequence_length = self._phase.sequence_length
        spans = pack_sentences(
            pieces.row_lengths(), tf.gather(documents, line), sequence_length, self._documents_in_row
        )  # fmt: skip
        rows = assemble_rows(pieces.values, spans, sequence_length, self._tokenizer.vocabulary)
        ids = chunk * 2**20 + tf.range(tf.shape(spans, tf.int64)[0])
        return rows.word_ids, rows.lengths, ids

    def _shuffled_rows(self, epoch):
        """`_rows` in the order of an epoch, with the epoch [n] of each."""
        sources = tf.range(self._lines.sources, dtype=tf.int64)
        blocks = self._rows(tf.gather(sources, self._order(epoch, sources, _FILE_ORDER)))

        def shuffle(word_ids, lengths, ids):
            order = self._order(epoch, ids, _ROW_ORDER)
            rows = tuple(tf.gather(values, order) for values in (word_ids, lengths, ids))
            return (*rows, tf.fill(tf.shape(ids), epoch))

        return blocks.rebatch(_ROWS_SHUFFLED_AT_ONCE).map(shuffle)

    def _order(self, epoch, ids, stream):
        """A permutation of [n] that is a function of (seed, epoch, ids)."""
        bits = random_bits(example_keys(self._seed, epoch, ids), tf.constant([[stream]]))[:, 0]
        return tf.argsort(tf.cast(tf.bitwise.right_shift(bits, tf.constant(1, tf.uint64)), tf.int64))

    def _fill(self, word_ids, lengths, ids, epochs):
        """Adds rows of [CLS] alone up to the batch size; their length of 1 tells them."""
        missing = self._phase.batch_size - tf.size(ids)
        empty = tf.one_hot(tf.zeros([missing], tf.int32), self._phase.sequence_length, dtype=tf.int32)
        word_ids = tf.concat([word_ids, empty * self._tokenizer.vocabulary.cls_id], axis=0)
        lengths = tf.concat([lengths, tf.ones([missing], tf.int32)], axis=0)
        return word_ids, lengths, tf.pad(ids, [[0, missing]]), tf.pad(epochs, [[0, missing]])

    def _masked(self, batches):
        options = tf.data.Options()
        options.deterministic = True
        # The first batches are made when an iterator is opened, not when it is first asked.
        options.experimental_warm_start = True
        rows = batches.rebatch(_ROWS_MASKED_AT_ONCE)
        rows = rows.map(self._mask, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        batches = rows.rebatch(self._phase.batch_size, drop_remainder=True)
        return batches.with_options(options).prefetch(tf.data.AUTOTUNE)

    def _mask(self, word_ids, lengths, ids, epochs):
        sequence_length = self._phase.sequence_length
        word_ids = tf.ensure_shape(word_ids, [None, sequence_length])
        return {
            **self._masking(word_ids, lengths, ids, epochs if self._refreshes else 0),
            "input_mask": tf.sequence_mask(lengths, sequence_length, tf.int32),
            "input_type_ids": tf.zeros_like(word_ids),
            "example_weights": tf.cast(lengths > 1, tf.float32),
        }
