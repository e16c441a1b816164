"""Files for retrieval: BEIR's folder of passages, queries and judgements, and TREC's format of the results."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from keras_bert.core.errors import UserError
from keras_bert.core.files import exists, is_folder, join, list_folder
from keras_bert.core.whole_files import atomic_write
from keras_bert.data.tables.json_rows import LINES
from keras_bert.data.tables.rows import Row
from keras_bert.data.tables.tables import read_table

_PASSAGES, _QUERIES, _JUDGEMENTS = "corpus.jsonl", "queries.jsonl", "qrels"
_FORM = f"{_PASSAGES}, {_QUERIES} and {_JUDGEMENTS}/SPLIT.tsv"


class Passages(Protocol):
    """The ids of the passages in order; `items` gives each passage's (id, text), as often as it is called."""

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...

    def items(self) -> Iterable[tuple[Any, str]]: ...


@dataclass(frozen=True)
class RetrievalSet:
    """A test collection for retrieval.

    Attributes:
        queries: `{id: text}`.
        passages: the passages to search.
        grades: `{query's id: {passage's id: grade}}`, above 0 for relevant passages.
    """

    queries: Mapping[Any, str]
    passages: Passages
    grades: Mapping[Any, Mapping[Any, float]]


class PassageFile:
    """The passages of a `corpus.jsonl`, which is read anew for their texts; only the ids are in memory.

    Raises:
        UserError: a line is no passage, or repeats an id.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._ids: dict[str, None] = {}
        for row in read_table(path, ("_id",), format=LINES):
            self._ids[_new_id(row, self._ids)] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __contains__(self, passage: object) -> bool:
        return passage in self._ids

    def items(self) -> Iterator[tuple[str, str]]:
        for row in read_table(self._path, ("_id", "text"), ("title",), optional_in_rows=True, format=LINES):
            _, text, title = row.cells
            title = "" if title is None else _text(row, title, "title")
            yield _id(row), with_title(title, _text(row, text, "text"))

    def __len__(self) -> int:
        return len(self._ids)


def with_title(title: str, text: str) -> str:
    """The input text of a passage for BEIR's models: its title, a space, its text."""
    return f"{title} {text}".strip()


def read_retrieval_set(folder: str, split: str = "test") -> RetrievalSet:
    """Reads a folder in BEIR's format (Thakur et al. 2021).

    `corpus.jsonl` has the fields `_id`, `text` and optionally `title`; `queries.jsonl` has `_id` and `text`;
    `qrels/SPLIT.tsv` has the columns `query-id`, `corpus-id` and `score`, the grade. Queries without a grade are left
    out.

    Raises:
        UserError: a file is missing or empty; a row is broken, repeats an id or has an unknown one; or no grade is
            above 0.
    """
    judgements = judgements_file(folder, split)
    queries = _queries(join(folder, _QUERIES))
    passages = PassageFile(join(folder, _PASSAGES))
    grades = _grades(judgements, queries, passages)
    return RetrievalSet({name: queries[name] for name in queries if name in grades}, passages, grades)


def judgements_file(folder: str, split: str) -> str:
    """The file with a split's grades. Raises `UserError` if it, or another file of the form, is not in the folder."""
    for name in (_PASSAGES, _QUERIES, _JUDGEMENTS):
        if not exists(join(folder, name)):
            held = ", ".join(list_folder(folder)[:10]) if is_folder(folder) else "no folder"
            raise UserError(f"{folder}: needs {_FORM}. Received: {held or 'an empty folder'}. Give a folder with them.")
    path = join(folder, _JUDGEMENTS, f"{split}.tsv")
    if not exists(path):
        splits = [name[:-4] for name in sorted(list_folder(join(folder, _JUDGEMENTS))) if name.endswith(".tsv")]
        raise UserError(f"{path}: needs a file. Received: none. The splits are {', '.join(splits) or 'none'}.")
    return path


def _queries(path: str) -> dict[str, str]:
    queries: dict[str, str] = {}
    for row in read_table(path, ("_id", "text"), format=LINES):
        text = _text(row, row.cells[1], "text")
        if not text.strip():
            raise UserError(f"{row.place}: needs a query. Received: an empty text. Give one, or leave the line out.")
        queries[_new_id(row, queries)] = text
    return queries


def _grades(path: str, queries: Mapping[str, str], passages: Collection[str]) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = {}
    for row in read_table(path, ("query-id", "corpus-id", "score")):
        query, passage, written = map(str.strip, row.cells)
        for name, known, file in ((query, queries, _QUERIES), (passage, passages, _PASSAGES)):
            if name not in known:
                raise UserError(f"{row.place}: needs an _id of {file}. Received: {name!r}. Correct it.")
        grade = _grade(row, written)
        if grades.setdefault(query, {}).setdefault(passage, grade) != grade:
            raise UserError(
                f"{row.place}: needs one grade for query {query!r} and passage {passage!r}. Received: {grade:g}, and "
                f"{grades[query][passage]:g} above. Leave one out."
            )
    if not any(grade > 0 for of_query in grades.values() for grade in of_query.values()):
        raise UserError(f"{path}: needs a relevant passage, with a score above 0. Received: none. Give some.")
    return grades


def _grade(row: Row, written: str) -> float:
    try:
        grade = float(written)
    except ValueError:
        grade = math.nan
    if not math.isfinite(grade):
        raise UserError(f"{row.place}: needs a number as score. Received: {written!r}. Correct it.")
    return grade


def _id(row: Row) -> str:
    """The id in the first cell, as text without white space around it; some data sets have numbers."""
    found = row.cells[0]
    name = "" if isinstance(found, bool) or not isinstance(found, str | int) else str(found).strip()
    if not name:
        raise UserError(f"{row.place}: needs a text as _id. Received: {json.dumps(found)[:80]}. Correct it.")
    return name


def _new_id(row: Row, known: Collection[str]) -> str:
    name = _id(row)
    if name in known:
        raise UserError(f"{row.place}: needs an _id of its own. Received: {name!r}, as in a line above. Correct it.")
    return name


def _text(row: Row, cell: object, field: str) -> str:
    if not isinstance(cell, str):
        raise UserError(
            f"{row.place}: needs text in the field {field!r}. Received: {json.dumps(cell)[:80]}. Correct it."
        )
    return cell.encode("utf-8", "replace").decode("utf-8")  # JSON may escape half a surrogate pair.


def require_run_ids(path: str, ids: Iterable[object]) -> None:
    """Raises `UserError` if `write_run` cannot write an id to the file `path`: a blank one, or one with white space."""
    spaced = next((one for one in ids if len(str(one).split()) != 1), None)
    if spaced is not None:
        raise UserError(f"{path}: needs ids without spaces for TREC's columns. Received: {spaced!r}.")


def write_run(path: str, ranking: Mapping[Any, Sequence[tuple[Any, float]]]) -> None:
    """Writes rankings as a TREC run, with lines of `query Q0 passage rank score name`, for trec_eval and the like.

    Args:
        ranking: `{query's id: [(passage's id, score)]}`, the best first.

    Raises:
        UserError: see `require_run_ids`.
    """
    with atomic_write(path) as stream:
        for query, found in ranking.items():
            for rank, (passage, score) in enumerate(found, 1):
                require_run_ids(path, (query, passage))
                stream.write(f"{query} Q0 {passage} {rank} {score:.9g} keras_bert\n")
