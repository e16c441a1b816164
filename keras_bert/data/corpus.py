"""Documents out of users' files: plain text, WikiExtractor's files or JSON lines, compressed or not."""

import bz2
import codecs
import contextlib
import gzip
import html
import io
import json
import lzma
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, islice

from keras_bert.errors import UserError
from keras_bert.files import is_remote, open_file
from keras_bert.text.sentences import split_sentences

_CHUNK_BYTES = 1 << 20
_COMPRESSIONS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_LONGEST_MAGIC = max(map(len, _COMPRESSIONS))
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)

# In characters. What is longer is cut, so that memory stays bounded.
_LONGEST_LINE = 1 << 26
_LONGEST_DOCUMENT = 1_000_000

# In novels with blank lines between paragraphs 20% and more of these are one sentence; of Wikipedia's articles 1–14%.
_BOOK_SAMPLE = 200
_BOOK_SINGLE_SHARE = 0.2
_BOOK_PASSAGE = 10_000  # Characters.

# In bytes of UTF-8, so that one number serves scripts of many and of few characters. A heading ends in "." too.
_SHORTEST_WIKI_PARAGRAPH = 60
_SHORTEST_WIKI_DOCUMENT = 200
_WIKI_TITLE = re.compile(r'title="([^"]*)"|$')
_WIKI_LIST_ITEM = re.compile(r"[-*#•·:;|{]|BULLET::::|\d+\.\s")
_WIKI_DEBRIS = re.compile(r"<ref[^>]*>.*?</ref>|</?[a-zA-Z][^<>]*>|[(（][\s,;:，；：、]*[)）]")
_SENTENCE_END = re.compile(r"""[.!?。！？…]["'”’」』）】》)\]]*\Z""")


@dataclass
class CorpusReport:
    """What reading a corpus gave: documents handed out, and what was left out and why.

    `dropped` counts documents by reason; `skipped` maps a file to the reason why it, or what
    stands in it after a damaged place, was not read. `books` names the plain-text files in which
    many paragraphs were joined into one document.
    """

    documents: int = 0
    dropped: Counter = field(default_factory=Counter)
    skipped: dict = field(default_factory=dict)
    books: list = field(default_factory=list)

    def __str__(self):
        lines = [f"dropped: {count:,} documents ({reason})" for reason, count in sorted(self.dropped.items())]
        lines += [f"skipped: {path} ({reason})" for path, reason in self.skipped.items()]
        if self.books:
            lines.append(f"read as books, paragraphs joined: {len(self.books):,} files, {self.books[0]} the first")
        return "\n".join(lines)


def read_documents(paths, report=None):
    """Iterates over the documents of files, in order, holding one document and a block of the file at a time.

    The format is judged by how a file begins: `<doc` is WikiExtractor's, `{` JSON lines with a `text`
    field, anything else plain text. Compression (.gz, .bz2, .xz) is judged by content too.
    Plain text has blank lines between documents; see `_plain_documents` for books. Paragraphs inside
    a document are separated by blank lines. A file that cannot be read to its end is named in the
    report; what came before the damaged block is kept.

    Args:
        paths: files, local or remote (`keras_bert.files.expand` makes them from patterns).
        report: a `CorpusReport` to fill in.

    Yields:
        One string per document, without white space around it.

    Raises:
        UserError: at the end, if no file held a document.
    """
    report = CorpusReport() if report is None else report
    paths = list(paths)
    for path in paths:
        before = report.documents
        try:
            for document in _file_documents(path, report):
                report.documents += 1
                yield document
        except _Unreadable as problem:
            report.skipped[str(path)] = str(problem)
        else:
            if report.documents == before:
                report.skipped[str(path)] = "no document in it"
    if not report.documents:
        reasons = [f"{path}: {reason}" for path, reason in islice(report.skipped.items(), 3)]
        raise UserError(
            f"The corpus: needs text. Received: {len(paths)} files without a usable document "
            f"({'; '.join(reasons)}). Give plain text with blank lines between documents, "
            "WikiExtractor's files or JSON lines with a `text` field."
        )


class _Unreadable(Exception):
    """Why a file is not read further."""


def _file_documents(path, report):
    lines = _lines(path)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise _Unreadable("empty")
    beginning = first.lstrip()
    lines = chain([first], lines)
    if beginning.startswith("<doc "):
        candidates = _wiki_documents(lines)
    elif beginning.startswith("{"):
        candidates = _json_documents(lines)
    else:
        candidates = _plain_documents(lines, path, report)
    for document, reason in candidates:
        if reason:
            report.dropped[reason] += 1
        else:
            yield document


def _lines(path):
    """The lines of a UTF-8 file without their ends, read in blocks. Raises `_Unreadable`."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
    pending = ""
    for chunk in chain(_chunks(path), [b""]):
        if b"\0" in chunk:
            raise _Unreadable("binary, not text")
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise _Unreadable(f"not UTF-8 ({error.reason}: byte {error.object[error.start]:#04x})") from None
        *lines, pending = (pending + text).split("\n")
        yield from lines
        if len(pending) > _LONGEST_LINE:
            yield pending
            pending = ""
    if pending:
        yield pending


def _chunks(path):
    """The blocks of a file's content, decompressed. Raises `_Unreadable`."""
    try:
        with contextlib.ExitStack() as stack:
            stream = stack.enter_context(open_file(path))
            head = stream.read(_LONGEST_MAGIC)
            stream.seek(0)
            for magic, decompressed in _COMPRESSIONS.items():
                if head.startswith(magic):
                    stream = stack.enter_context(decompressed(stream))
                    break
            while chunk := stream.read(_CHUNK_BYTES):
                yield chunk
    except Exception as error:
        if not isinstance(error, _DAMAGED) and not is_remote(path):  # tf.io.gfile raises TensorFlow's own errors.
            raise
        reason = getattr(error, "strerror", None) or getattr(error, "message", None) or error
        raise _Unreadable(f"cannot be read ({reason})") from None


def _plain_documents(lines, path, report):
    """Blocks between blank lines; in a book, where a block is but a paragraph, many blocks make a document.

    A file is taken for a book if it begins with `_BOOK_SAMPLE` blocks, none of them long, of which
    `_BOOK_SINGLE_SHARE` are a single sentence: no segment pair comes out of such documents.
    """
    blocks = _blocks(lines)
    sample = []
    for block in blocks:
        sample.append(block)
        if len(sample) == _BOOK_SAMPLE or len(block) >= _BOOK_PASSAGE:
            break
    blocks = chain(sample, blocks)
    singles = sum(len(split_sentences(block)) == 1 for block in sample)
    if len(sample) < _BOOK_SAMPLE or singles < _BOOK_SINGLE_SHARE * _BOOK_SAMPLE:
        yield from ((block, None) for block in blocks)
        return
    report.books.append(str(path))
    passage, length = [], 0
    for block in blocks:
        passage.append(block)
        length += len(block)
        if length >= _BOOK_PASSAGE:
            yield "\n\n".join(passage), None
            passage, length = [], 0
    if passage:
        yield "\n\n".join(passage), None


def _blocks(lines):
    block, length = [], 0
    for line in chain(lines, [""]):
        if line.strip():
            block.append(line)
            length += len(line) + 1
        if block and (length >= _LONGEST_DOCUMENT or not line.strip()):
            yield "\n".join(block).strip()
            block, length = [], 0


def _json_documents(lines):
    for line in lines:
        if not line.strip():
            continue
        try:
            text = json.loads(line)["text"].strip()
            text.encode("utf-8")
        except UnicodeEncodeError:
            yield None, "text with half a surrogate pair"
        except (KeyError, TypeError, AttributeError):
            yield None, "no text field"
        except (ValueError, RecursionError):
            yield None, "a line that is not JSON"
        else:
            yield text, None if text else "empty"


def _wiki_documents(lines):
    title, paragraphs = None, []
    for line in chain(lines, ["</doc>"]):
        if line.startswith("<doc "):
            title, paragraphs = html.unescape(_WIKI_TITLE.search(line)[1] or ""), []
        elif title is None:
            continue
        elif line.startswith("</doc>"):
            text = "\n\n".join(paragraphs)
            yield text, None if len(text.encode()) >= _SHORTEST_WIKI_DOCUMENT else "hardly any running text"
            title = None
        else:
            paragraph = _WIKI_DEBRIS.sub("", html.unescape(line)).strip()
            if paragraph != title and _is_running_text(paragraph):
                paragraphs.append(paragraph)


def _is_running_text(paragraph):
    """Whether a line is neither heading, list item nor the line that introduces a list."""
    if _WIKI_LIST_ITEM.match(paragraph) or not _SENTENCE_END.search(paragraph):
        return False
    return not paragraph.endswith(".") or len(paragraph.encode()) >= _SHORTEST_WIKI_PARAGRAPH
