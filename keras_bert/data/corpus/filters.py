"""Filters for web text (`config.corpus.FilterConfig`), each a pure function of one document."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from keras_bert.config.corpus import FilterConfig
from keras_bert.core.errors import UserError
from keras_bert.data.corpus.text_lines import read_whole_lines
from keras_bert.text.sentences import split_sentences

_LETTERS = re.compile(r"[^\W\d_]+")
# Scripts that do not separate words: Thai, kana, Chinese characters.
_UNSEPARATED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")


class BadWords:
    """Words and phrases to find in texts, ignoring case.

    As for C4, a match must not have a letter, digit or underscore before or after it, except in Chinese, Japanese and
    Thai, which do not separate words.
    """

    def __init__(self, phrases: Iterable[str]):
        self._unseparated: list[str] = []
        # A regex of hundreds of alternatives is slow. Looking up the runs of letters of a text is fast, and few texts
        # contain all runs of a phrase.
        self._of_symbols: list[str] = []
        self._of_letters: dict[str, list[tuple[frozenset[str], str]]] = {}
        for phrase in dict.fromkeys(map(str.lower, phrases)):
            if _UNSEPARATED.search(phrase):
                self._unseparated.append(phrase)
            elif runs := _LETTERS.findall(phrase):
                self._of_letters.setdefault(max(runs, key=len), []).append((frozenset(runs), phrase))
            else:
                self._of_symbols.append(phrase)

    @classmethod
    def from_file(cls, path: str) -> "BadWords":
        """Reads one word or phrase from each line. Raises `UserError` if the file is missing, not UTF-8 or empty."""
        phrases = [line.strip().removeprefix("\ufeff") for line in read_whole_lines(path)]
        phrases = [phrase for phrase in phrases if phrase]
        if not phrases:
            raise UserError(f"{path}: needs a word or phrase on each line. Received: an empty file.")
        return cls(phrases)

    def is_in(self, text: str) -> bool:
        """Whether the text contains one of the phrases."""
        text = text.lower()
        if any(phrase in text for phrase in self._unseparated):
            return True
        runs = set(_LETTERS.findall(text))
        candidates = [
            phrase
            for longest in self._of_letters.keys() & runs
            for needed, phrase in self._of_letters[longest]
            if needed <= runs
        ]
        return any(_stands_alone(phrase, text) for phrase in (*candidates, *self._of_symbols))


def _stands_alone(phrase: str, text: str) -> bool:
    return phrase in text and re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None


_END_MARKS = (*'.?!"', *"”»。！？｡．」』")
_ELLIPSES = ("...", "…")
_CITATION_MARKER = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
_JAVASCRIPT = "javascript"
_LOREM_IPSUM = "lorem ipsum"
_POLICY_NOTICES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
# The characters that BERT's tokenizer treats as words of their own.
_IDEOGRAPH = re.compile(
    r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)
_HAS_WORD = re.compile(r"\w")
_CHARACTERS_OF_A_SENTENCE = 300


class Filtered(NamedTuple):
    """The result of filtering a document.

    Attributes:
        text: the text that is left; None if the document is dropped.
        dropped_by: the filter that dropped it, as named in `FilterConfig`, or "no line left"; None if it is kept.
        lines: how many lines it had, blank ones not counted; 0 if no filter looks at lines.
        removed: lines (for `citation_markers`: markers) removed by each filter, even if the document is dropped.
    """

    text: str | None
    dropped_by: str | None
    lines: int
    removed: Counter[str]


class DocumentFilters:
    """The filters that look at one document at a time: all but `repeated_spans`. Picklable.

    The order is that of C4's code in TensorFlow Datasets (`text/c4_utils.py`): `lorem_ipsum` and `curly_braces` see
    only lines that pass `terminal_punctuation` and `min_words`.

    Attributes:
        bad_words: the words in the file `config.bad_words`; None without one.

    Raises:
        UserError: the file of bad words is missing, not UTF-8 or empty.
    """

    def __init__(self, config: FilterConfig):
        self._config = config
        self.bad_words = BadWords.from_file(config.bad_words) if config.bad_words else None
        self._looks_at_lines = bool(
            config.terminal_punctuation
            or config.min_words
            or config.max_word_length
            or config.citation_markers
            or config.javascript
            or config.policy_notices
        )

    def __call__(self, text: str) -> Filtered:
        """Filters one document.

        If a filter looks at lines, each line counts as a paragraph: blank lines separate the kept ones, so that no
        sentence continues into the next line.
        """
        config = self._config
        lines = 0
        removed: Counter[str] = Counter()
        found: set[str] = set()
        if self._looks_at_lines:
            text, lines, found = self._filter_lines(text, removed)
        else:
            if config.curly_braces and "{" in text:
                found.add("curly_braces")
            if config.lorem_ipsum and _LOREM_IPSUM in text.lower():
                found.add("lorem_ipsum")
        dropped_by = self._dropped_by(text, found)
        return Filtered(None if dropped_by else text, dropped_by, lines, removed)

    def _dropped_by(self, text: str, found: set[str]) -> str | None:
        for name in ("lorem_ipsum", "curly_braces"):
            if name in found:
                return name
        if self.bad_words and self.bad_words.is_in(text):
            return "bad_words"
        if self._config.min_sentences and too_few_sentences(text, self._config):
            return "min_sentences"
        return None if text else "no line left"

    def _filter_lines(self, text: str, removed: Counter[str]) -> tuple[str, int, set[str]]:
        """Return (the kept lines, how many there were, which of `lorem_ipsum` and `curly_braces` apply)."""
        config = self._config
        found: set[str] = set()
        lower = text.lower() if config.javascript or config.policy_notices or config.lorem_ipsum else ""
        has_javascript = config.javascript and _JAVASCRIPT in lower
        has_policy = config.policy_notices and _has_policy_notice(lower)
        has_lorem = config.lorem_ipsum and _LOREM_IPSUM in lower
        has_brace = config.curly_braces and "{" in text
        has_marker = config.citation_markers and "[" in text
        is_suspect = has_javascript or has_policy or has_lorem or has_brace
        parts: list[str] = []
        lines = 0
        for line in text.splitlines():
            line = line.strip()
            if not line:
                continue
            lines += 1
            if config.max_word_length and longest_word(line, config.max_word_length) > config.max_word_length:
                removed["max_word_length"] += 1
                continue
            if has_marker and "[" in line:
                line, markers = _CITATION_MARKER.subn("", line)
                line = line.strip()
                if markers:
                    removed["citation_markers"] += markers
            if config.terminal_punctuation and not ends_a_sentence(line):
                removed["terminal_punctuation"] += 1
                continue
            if config.min_words and not has_words(line, config.min_words):
                removed["min_words"] += 1
                continue
            if is_suspect:
                lower = line.lower()
                if has_lorem and _LOREM_IPSUM in lower:
                    found.add("lorem_ipsum")
                if has_javascript and _JAVASCRIPT in lower:
                    removed["javascript"] += 1
                    continue
                if has_brace and "{" in line:
                    found.add("curly_braces")
                if has_policy and _has_policy_notice(lower):
                    removed["policy_notices"] += 1
                    continue
            if line:  # Citation markers may have been all of it.
                parts.append(line)
        return "\n\n".join(parts), lines, found


def ends_a_sentence(line: str) -> bool:
    """Whether a line ends in a period, question mark, exclamation mark or closing quotation mark, also Chinese ones.

    An ellipsis does not count: it marks text that was cut off.
    """
    return line.endswith(_END_MARKS) and not line.endswith(_ELLIPSES)


def has_words(line: str, least: int) -> bool:
    """Whether a line has at least `least` words.

    White space separates words, and each Chinese character is one, as in BERT's tokenizer.
    """
    if line.isascii() or not _IDEOGRAPH.search(line):
        return len(line.split(None, least - 1)) >= least
    others, characters = _IDEOGRAPH.subn(" ", line)
    return characters + sum(_HAS_WORD.search(word) is not None for word in others.split()) >= least


def longest_word(line: str, most: int) -> int:
    """The length of the longest word in characters; for a line of at most `most` characters, simply its own length."""
    if len(line) <= most:
        return len(line)
    if not line.isascii():
        line = _IDEOGRAPH.sub(" ", line)
    return max(map(len, line.split()), default=1)


def too_few_sentences(text: str, config: FilterConfig) -> bool:
    """Whether `min_sentences` drops a document with this text."""
    least = config.min_sentences
    # Splitting costs more than all other filters together, and the beginning of a text is mostly enough. The cut may
    # add one sentence that the whole text does not have.
    beginning = text[: _CHARACTERS_OF_A_SENTENCE * least]
    if len(beginning) < len(text) and len(split_sentences(beginning)) > least:
        return False
    return len(split_sentences(text)) < least


def _has_policy_notice(lower: str) -> bool:
    return any(notice in lower for notice in _POLICY_NOTICES)
