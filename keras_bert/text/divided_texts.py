"""Texts of any length in parts of bounded size, so that memory does not depend on how long a text is."""

from collections.abc import Iterable, Iterator

from keras_bert.text.sentences import split_sentences

_SEARCHED = 10_000  # Characters at the end of a part, in which its last sentence is looked for.
# Normalizing takes some 100 bytes of memory for each byte of a batch.
_LONGEST_IN_BATCH = 1 << 18  # Characters.
_BATCH_BYTES = 1 << 20


def divide_text(text: str, longest: int) -> Iterator[str]:
    """Cuts a text into parts of at most `longest` characters: between sentences, or else words, or else anywhere.

    A text that is short enough is yielded as it is. White space at the cuts is left out.
    """
    start = 0
    while len(text) - start > longest:
        end = start + longest
        tail = text[max(start, end - _SEARCHED) : end]
        end += _length_to_keep(tail) - len(tail)
        if part := text[start:end].strip():
            yield part
        start = end
    rest = text[start:].strip() if start else text
    if rest or not start:
        yield rest


def utf8_batches(texts: Iterable[str]) -> Iterator[list[bytes]]:
    """The texts as UTF-8, long ones in parts, in batches of about a megabyte."""
    batch: list[bytes] = []
    size = 0
    for text in texts:
        for part in divide_text(text, _LONGEST_IN_BATCH):
            batch.append(part.encode("utf-8", "ignore"))
            size += len(batch[-1])
            if size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _length_to_keep(tail: str) -> int:
    """Where the last sentence of `tail`, which may go on after it, begins; or its last word; or else its end."""
    kept = tail.rstrip()
    sentences = split_sentences(kept)
    if len(sentences) > 1:
        return len(kept) - len(sentences[-1])
    words = kept.rsplit(None, 1)
    return len(kept) - len(words[1]) if len(words) > 1 else len(tail)
