"""How a corpus is read and filtered: settings that recipes, `prepare` and `vocab` share."""

import os
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from keras_bert.config.recipes import find_config
from keras_bert.core.errors import UserError
from keras_bert.core.settings import Bounds, Checked, require
from keras_bert.core.yaml_and_json import read_yaml

TableFormat = Literal["csv", "ssv", "tsv", "raw_tsv", "jsonl", "json", "parquet", "arrow"]
TABLE_FORMATS = get_args(TableFormat)
BrokenLines = Literal["refuse", "skip"]
REFUSE, SKIP = get_args(BrokenLines)
Fewest = Annotated[int, Bounds("0, which turns it off, or more")]


@dataclass
class FilterConfig(Checked):
    """Filters for web text, as used for C4 (Raffel et al. 2020, section 2.2). All are off by default.

    Attributes:
        terminal_punctuation: drop lines that do not end in a period, question mark, exclamation mark or closing
            quotation mark.
        min_words: drop lines with fewer words; 0 for none.
        max_word_length: drop lines with a longer word; 0 for none.
        citation_markers: remove Wikipedia's [1], [edit] and [citation needed].
        javascript: drop lines that mention JavaScript.
        policy_notices: drop lines about cookies, privacy or terms of use.
        lorem_ipsum: drop documents with "lorem ipsum" in a line that was not dropped.
        curly_braces: drop documents with a curly brace in a line that was not dropped.
        bad_words: drop documents with a word or phrase from this file, one per line.
        min_sentences: drop documents with fewer sentences left; 0 for none.
        repeated_spans: remove each span of this many sentences that occurred earlier in the corpus (C4: 3); 0 for none.
    """

    terminal_punctuation: bool = False
    min_words: Fewest = 0
    max_word_length: Fewest = 0
    citation_markers: bool = False
    javascript: bool = False
    policy_notices: bool = False
    lorem_ipsum: bool = False
    curly_braces: bool = False
    bad_words: str | None = None
    min_sentences: Fewest = 0
    repeated_spans: Fewest = 0


@dataclass
class CorpusConfig(Checked):
    """How text is read.

    Attributes:
        text: table column or data set field that holds the text: its name or, in a CSV or TSV without a header, its
            number from 0.
        format: how tables are written, if their names and contents do not show it. ssv: semicolons; tsv: tabs, quoted
            cells; raw_tsv: tabs, no quotes.
        broken_lines: whether to stop at a line or row that is broken or has no text (`refuse`), or to count and skip it
            (`skip`).
        filters: filters for web text: the name of a file in configs/filters, such as c4, or settings of their own.
    """

    text: str = "text"
    format: TableFormat | None = None
    broken_lines: BrokenLines = "refuse"
    filters: FilterConfig = field(default_factory=FilterConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.text, "text", "the name of a column", self.text)


def extended_filters(values: str | dict[str, Any], folder: str = "", read: tuple[str, ...] = ()) -> dict[str, Any]:
    """The `FilterConfig` fields of `filters`: the name or path of a file, or fields that may extend one.

    Args:
        values: `c4`, or `{extends: c4, bad_words: words.txt}`.
        folder: where a relative path may be, besides the current folder: that of the file that extends it.
        read: the files that extend these fields, in order.

    Raises:
        UserError: there is no such file in configs/filters, it is not a mapping, or it extends itself.
    """
    if isinstance(values, str):
        values = {"extends": values}
    if not isinstance(values, dict) or "extends" not in values:
        return values
    values = dict(values)
    path = find_config("filters", values.pop("extends"), folder)
    if os.path.realpath(path) in map(os.path.realpath, read):
        raise UserError(
            f"{path}: needs `extends` that does not lead back to it. Received: {' → '.join((*read, path))}. Correct it."
        )
    return {**extended_filters(read_yaml(path), os.path.dirname(path), (*read, path)), **values}
