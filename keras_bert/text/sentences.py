"""Rule-based sentence splitting for English and Chinese."""

import re
from collections.abc import Iterable, Iterator

# A terminator with the closing quotes and brackets after it, or a blank line. Group 1 ends a sentence anywhere, group 2
# before whitespace; group 3 is the first character of the next word. Every alternative matches once its first character
# does, so the scan is linear on any text.
_CANDIDATE = re.compile(
    r"""([。！？｡][。！？｡!?…]*["'”’」』）】》〉)\]]*)"""
    r"""|([.!?…]+["'”’»)\]}]*)(?:(?=\s[\s"'“‘«(\[{¿¡—–-]*(\w?))|)"""
    r"""|\n[ \t\r]*\n"""
)
_WORD = re.compile(r"\w*")
_CONTINUING = ("，", "、", "；", "：", ",", ";")
_HAS_WORD = re.compile(r"\w")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_LONGEST_ABBREVIATION = 16
# What may precede an abbreviation: a space, an opening mark, or Chinese text.
_BEFORE_WORD = re.compile(r"""[\s"'“‘«(\[{—–\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef-]+""")

# Followed by a name or an example.
_NEVER_LAST = frozenset(
    """mr mrs ms messrs mme mlle dr prof gen col maj capt cpt lt sgt cpl adm cmdr rev hon gov sen rep supt mt ft
    vs v cf viz e.g i.e ph""".split()
)
# May be followed by a number.
_BEFORE_NUMBER = frozenset(
    """no nos vol vols p pp fig figs eq eqs sec ch art ref refs approx ca c b d r op pt ver
    jan feb mar apr jun jul aug sept sep oct nov dec""".split()
)
# These, and letters with periods (U.S.), end a sentence only before a word that starts sentences and is not a name.
_SELDOM_LAST = frozenset("st etc inc ltd co corp bros jr sr al dept univ assn esq ave blvd rd ed eds est".split())
_STARTERS = frozenset(
    """A An The This That These Those There Then Thus He She It They We You I His Her Its Their Our My Your In On At By
    For From To With After Before During Since Until While When Where As If Although Though Because However Both But
    And Or So Some Many Most Other Others Another Such One Two What Who Why How Not No Yes Also Later Under Over
    """.split()
)
_ACRONYM = re.compile(r"(?:[^\W\d]{1,2}\.)+[^\W\d]{1,2}\Z")
_ABBREVIATIONS = _NEVER_LAST | _BEFORE_NUMBER | _SELDOM_LAST


def split_sentences(text: str) -> list[str]:
    """Splits text into sentences, stripped of surrounding whitespace; no other character is lost.

    A single line break is whitespace; a blank line ends a paragraph and so a sentence. `。！？` end one anywhere,
    `.!?…` before whitespace (`!?` also before an ideograph) unless the next word is in lower case; closing quotes and
    brackets belong to the sentence they close. Abbreviations, initials, list numbers and decimals do not end one.

    Args:
        text: a text of any number of paragraphs.

    Returns: non-empty strings, in order. Each has a letter or digit, unless the text has none at all: a dash or the
        third period of ". . ." belongs to the sentence before it.

    Example:
        keras_bert.split_sentences("It rained. Nobody came.")      # ["It rained.", "Nobody came."]
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _CANDIDATE.finditer(text):
        end = match.end()
        if match[1]:
            if text.startswith(_CONTINUING, end):  # A title inside a sentence: 《好吗？》，
                continue
        elif match.lastindex is not None and not _ends_sentence(match, text, start, end):
            continue
        _add_span(spans, text, start, end)
        start = end
    _add_span(spans, text, start, len(text))
    sentences = (text[first:last].strip() for first, last in spans)
    return [sentence for sentence in sentences if sentence]


def _add_span(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    if spans and not _HAS_WORD.search(text, start, end):
        spans[-1] = (spans[-1][0], end)
    elif len(spans) == 1 and not _HAS_WORD.search(text, *spans[0]):
        spans[0] = (spans[0][0], end)
    else:
        spans.append((start, end))


def _ends_sentence(match: re.Match[str], text: str, start: int, end: int) -> bool:
    """Whether a match of `.!?…` ends the sentence that began at `start`."""
    stop = match.start()
    next_character = match[3]
    if next_character is None:  # No whitespace follows.
        return end == len(text) or (text[stop] in "!?" and _IDEOGRAPH.match(text, end) is not None)
    if next_character.islower():
        return False
    if text[stop] != "." or text.startswith("..", stop):
        return True
    word = _BEFORE_WORD.split(text[max(start, stop - _LONGEST_ABBREVIATION) : stop])[-1]
    if not word:
        return True
    if word.isdigit():
        return text[start:stop].strip() != word  # Not the "1." of a list.
    if len(word) > 1 and "." not in word and word.lower() not in _ABBREVIATIONS:
        return True
    next_word = _WORD.match(text, match.start(3))
    return _abbreviation_ends_sentence(word, next_word.group() if next_word else "")


def _abbreviation_ends_sentence(word: str, next_word: str) -> bool:
    """Whether the period after the abbreviation or initial `word`, before `next_word`, ends a sentence."""
    abbreviation = word.lower()
    if abbreviation in _NEVER_LAST:
        return False
    if len(word) == 1 and word.isupper():
        return word == "I"
    if abbreviation in _BEFORE_NUMBER:
        is_roman = next_word != "I" and next_word.strip("IVXLC") == ""
        return not next_word or not (next_word[0].isdigit() or is_roman)
    if abbreviation in _SELDOM_LAST or _ACRONYM.match(word):
        return not next_word or next_word in _STARTERS
    return True


_SEARCHED = 10_000  # How many characters at the end of a part are searched for its last sentence.
# Normalizing takes some 100 bytes of memory for each byte of a batch.
_LONGEST_IN_BATCH = 1 << 18  # Characters.
_BATCH_BYTES = 1 << 20


def divide_text(text: str, longest: int) -> Iterator[str]:
    """Cuts a text into parts of at most `longest` characters: between sentences, or else words, or else anywhere.

    A text that is short enough is yielded unchanged. White space at the cuts is dropped.
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
    """Batches of about a megabyte of the texts in UTF-8, with long texts cut into parts."""
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
    """Where to cut `tail`: before its last sentence, which may be incomplete, or its last word, or else at its end."""
    kept = tail.rstrip()
    sentences = split_sentences(kept)
    if len(sentences) > 1:
        return len(kept) - len(sentences[-1])
    words = kept.rsplit(None, 1)
    return len(kept) - len(words[1]) if len(words) > 1 else len(tail)
