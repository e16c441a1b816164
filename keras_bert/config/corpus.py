"""How a corpus is read and filtered: settings that recipes, `prepare` and `vocab` share."""

from dataclasses import dataclass, field
from typing import Any

from keras_bert.config.recipes import find_config
from keras_bert.core import settings
from keras_bert.core.settings import require

TABLE_FORMATS = ("csv", "ssv", "tsv", "raw_tsv", "jsonl", "json", "parquet", "arrow")
REFUSE, SKIP = BROKEN_LINES = ("refuse", "skip")


@dataclass
class FilterConfig:
    """Filters for web text, as used for C4 (Raffel et al. 2020, section 2.2). All are off by default.

    These drop lines: `terminal_punctuation` those that do not end in a period, question mark, exclamation mark or
    closing quotation mark; `min_words` those with fewer words, and `max_word_length` those with a longer word (0: off);
    `javascript` those that mention JavaScript; `policy_notices` those about cookies, privacy or terms of use.
    `citation_markers` removes Wikipedia's [1], [edit] and [citation needed].

    These drop documents: `lorem_ipsum` and `curly_braces` those with either in a line that was not dropped;
    `bad_words`, a file with a word or phrase on each line, those with one of them; `min_sentences` those with fewer
    sentences left.

    `repeated_spans: n` removes each span of n sentences that occurred earlier in the corpus (C4: 3; 0: off).
    """

    terminal_punctuation: bool = False
    min_words: int = 0
    max_word_length: int = 0
    citation_markers: bool = False
    javascript: bool = False
    policy_notices: bool = False
    lorem_ipsum: bool = False
    curly_braces: bool = False
    bad_words: str | None = None
    min_sentences: int = 0
    repeated_spans: int = 0

    def __post_init__(self) -> None:
        for key in ("min_words", "max_word_length", "min_sentences", "repeated_spans"):
            require(getattr(self, key) >= 0, key, "0, which turns it off, or more", getattr(self, key))


@dataclass
class CorpusConfig:
    """`text` is the column of a table, or the field of a data set, that holds the text.

    `format` is that of the files, of `TABLE_FORMATS`, if their names and contents do not tell that they are tables, or
    tell it wrongly. `broken_lines` says what to do with a line that is not JSON, not UTF-8, or has no such field, and
    with a row of too few or too many cells: `refuse` stops and names the line, `skip` counts it.
    """

    text: str = "text"
    format: str | None = None
    broken_lines: str = REFUSE
    filters: FilterConfig = field(default_factory=FilterConfig)

    def __post_init__(self) -> None:
        require(self.text, "text", "the name of a column", self.text)
        require_format(self.format)
        require(
            self.broken_lines in BROKEN_LINES, "broken_lines", f"one of {', '.join(BROKEN_LINES)}", self.broken_lines
        )


def require_format(format: str | None) -> None:
    """Raises `ValueError` unless it is None or one of `TABLE_FORMATS`."""
    require(format in (None, *TABLE_FORMATS), "format", f"one of {', '.join(TABLE_FORMATS)}", format)


def extended_filters(values: str | dict[str, Any], folder: str = "") -> dict[str, Any]:
    """The `FilterConfig` fields of `filters`: the name or path of a file, or fields that may extend one.

    Args:
        values: `c4`, or `{extends: c4, bad_words: words.txt}`.
        folder: where a relative path may be, besides the current folder.

    Raises:
        UserError: there is no such file in configs/filters, or it is not a mapping.
    """
    if isinstance(values, str):
        values = {"extends": values}
    if not isinstance(values, dict) or "extends" not in values:
        return values
    values = dict(values)
    path = find_config("filters", values.pop("extends"), folder)
    return {**extended_filters(settings.read_yaml(path)), **values}
