"""Lines of raw text in the graph, each with its document, parted into training and validation."""

import gzip
import os

import tensorflow as tf

from keras_bert.config.pretraining import TFDS_PREFIX
from keras_bert.errors import UserError
from keras_bert.files import open_file
from keras_bert.globs import expand

_LINES_AT_ONCE = 512
_FILES_AT_ONCE = 4
_COMPRESSED_OTHERWISE = (".bz2", ".xz", ".zip", ".zst")
_LOOKED_AT = 4096  # Bytes of each file's beginning.
_SIDE_KEY = (20181011, 4805)
_SIDES = 2**30


class RawLines:
    """Plain text in files, or a corpus of TensorFlow Datasets, as a `tf.data` pipeline without Python in it.

    A blank line ends a document; so does the end of a file. Of a TFDS corpus every example is a document.
    Which side a document is on is a hash of its first line, so a document that goes on in the next chunk stays on
    its side, and documents that begin alike are on the same one.

    Args:
        names: the recipe's `data.files`: files, folders or globs (plain or .gz), or one `tfds:NAME[/CONFIG][:SPLIT]`.
        validation_share: share of documents held out, from 0 to 1.

    Raises:
        UserError: no file, a file of another format, or no such corpus.
    """

    def __init__(self, names, validation_share):
        self.names = ", ".join(names)
        self._share = validation_share
        self._corpus = None
        if any(name.startswith(TFDS_PREFIX) for name in names):
            self._corpus = _open_corpus(names)
            self.sources = 1
        else:
            paths = [os.fspath(path) for path in expand(names)]
            for path in paths:
                _check_is_plain_text(path)
            self._paths = tf.constant([os.fsencode(path) for path in paths])  # Names may be no UTF-8.
            self._compressions = tf.constant(["GZIP" if path.endswith(".gz") else "" for path in paths])
            self.sources = len(paths)

    @tf.autograph.experimental.do_not_convert  # To look for control flow takes seconds, and there is none.
    def chunks(self, validation, order=None):
        """A `tf.data.Dataset` of one pass, in pieces of at most 512 lines of one source.

        Args:
            validation: bool, which side's lines.
            order: int64 [sources], the order in which files are visited; as given without it. Four are read at once.

        Yields (chunk number int64, the same in every order; lines string [n]; documents int32 [n], which lines are
        of one document). The number is below 2**43. Blank lines and those of the other side are left out.
        """
        order = tf.range(self.sources, dtype=tf.int64) if order is None else order

        def chunks_of(source):
            chunks = self._lines(source).batch(_LINES_AT_ONCE)
            # Whether a document is open where a chunk begins, and whether it is held out.
            state = (tf.constant(False), tf.constant(False))
            chunks = chunks.scan(state, lambda state, lines: self._part(state, lines, validation))
            return chunks.enumerate().map(lambda number, chunk: (source * 2**24 + number, *chunk))

        sources = tf.data.Dataset.from_tensor_slices(order)
        return sources.interleave(chunks_of, _FILES_AT_ONCE, 1, num_parallel_calls=_FILES_AT_ONCE, deterministic=True)

    def training_texts(self):
        """Iterates over the training side's lines as strings: what a vocabulary is to be learned from."""
        for _, lines, _ in self.chunks(validation=False).as_numpy_iterator():
            yield from (line.decode("utf-8", "ignore") for line in lines)

    def _lines(self, source):
        if self._corpus is None:
            return tf.data.TextLineDataset(self._paths[source], compression_type=self._compressions[source])
        return self._corpus.flat_map(lambda text: tf.data.Dataset.from_tensor_slices(_document(text)))

    def _part(self, state, lines, validation):
        is_open, open_is_held_out = state
        is_blank = tf.strings.regex_full_match(lines, r"\s*")
        begins = ~is_blank & tf.concat([[~is_open], is_blank[:-1]], axis=0)
        document = tf.cumsum(tf.cast(begins, tf.int32))  # 0 for the one that was open.
        hashes = tf.strings.to_hash_bucket_strong(tf.boolean_mask(lines, begins), _SIDES, _SIDE_KEY)
        held_out = tf.concat([[open_is_held_out], hashes < round(self._share * _SIDES)], axis=0)
        held_out = tf.gather(held_out, document)
        is_wanted = ~is_blank & (held_out if validation else ~held_out)
        return (~is_blank[-1], held_out[-1]), (tf.boolean_mask(lines, is_wanted), tf.boolean_mask(document, is_wanted))


def _document(text):
    """The lines of one text, none of them blank but the last."""
    text = tf.strings.regex_replace(tf.strings.strip(text), r"\n\s*\n", "\n")
    return tf.concat([tf.strings.split(text, "\n"), [""]], axis=0)


def _check_is_plain_text(path):
    """Looks at a file's beginning only: the lines themselves are read in the graph."""
    if path.endswith(_COMPRESSED_OTHERWISE):
        raise UserError(
            f"{path}: needs plain text or .gz where data.source is text. Received: {os.path.splitext(path)[1]}. "
            "Give data.source=files, or decompress it."
        )
    try:
        with open_file(path) as stream:
            beginning = (gzip.open(stream) if path.endswith(".gz") else stream).read(_LOOKED_AT)
    except (OSError, EOFError) as error:
        raise UserError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    start = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"<doc ", b"{")):
        found = "JSON lines" if start.startswith(b"{") else "WikiExtractor's format"
        raise UserError(
            f"{path}: needs plain text where data.source is text. Received: {found}. Give data.source=files."
        )
    try:
        beginning.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character cut at the end of what was read is none of the file's faults.
        if b"\0" in beginning or error.start < len(beginning) - 3:
            raise UserError(
                f"{path}: needs UTF-8. Received: byte {beginning[error.start]:#04x} at {error.start}. Convert the file."
            ) from None


def _open_corpus(names):
    if len(names) > 1:
        raise UserError(
            f"data.files: needs one corpus of TensorFlow Datasets or files, where data.source is text. "
            f"Received: {', '.join(names)}. Give one of them."
        )
    # It takes seconds to import.
    from keras_bert.data.tfds_text import TfdsText

    return TfdsText(names[0]).dataset()
