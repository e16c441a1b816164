"""Pairs of a text and the text to write for it, from the user's own tables."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from keras_bert.config.finetuning import TaskDataConfig
from keras_bert.core.errors import UserError
from keras_bert.data.corpus.held_out import is_validation
from keras_bert.data.tables.rows import Row
from keras_bert.data.tables.tables import read_table, read_texts
from keras_bert.tasks.answer_files import STANDARD_STREAM
from keras_bert.tasks.labels import bad_cell_at, check_text
from keras_bert.tasks.sources import needs_files, none_held_out
from keras_bert.tasks.task import INPUT

_OPTIONS = "--text and --label"
_TARGET = "target"


class Pair(NamedTuple):
    """A text, the text to write for it (None if hidden), and where they stand."""

    source: str
    target: str | None
    place: str


class Pairs:
    """The pairs of every split of a recipe's data.

    Without a dev file, a share of the training file is held out by the hash of the source, so that equal sources are on
    the same side.

    Args:
        data: the recipe's section, of which `texts`, `label`, `format`, `columns` and `dev_share` are read.
        own: `{split: path}` of the user's files, with `INPUT` as the split of a file to answer.

    Attributes:
        source: the name of the column with the source.
        target: the name of the column with the target.

    Raises:
        UserError: there is not exactly one column of sources, it is the targets' column too, or no file is given.
    """

    def __init__(self, data: TaskDataConfig, own: Mapping[str, str]):
        self.target = data.label or _TARGET
        if len(data.texts) != 1:
            raise UserError(
                f"data.texts (--text): needs the name of one column, with the text to read. Received: "
                f"{', '.join(data.texts) or 'none'}."
            )
        [self.source] = data.texts
        if self.source == self.target:
            raise UserError(
                f"data.label (--label): needs another column than the text. Received: {self.source!r} for both."
            )
        if not own:
            raise needs_files("seq2seq", ("a table of pairs",))
        self._data, self._own = data, dict(own)
        self._is_shared = "train" in own and "dev" not in own
        if self._is_shared:
            self._own["dev"] = own["train"]

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(sorted(self._own, key=("train", "dev", "test", INPUT).index))

    def origin(self, split: str) -> str:
        """The file of a split."""
        return self._own[split]

    def read(self, split: str, needs_targets: bool) -> Iterator[Pair]:
        """Iterates over the pairs of a split.

        Args:
            needs_targets: whether a text without a target is refused; else targets are not read.

        Raises:
            UserError: the file cannot be read, lacks a column, or has no pair; a cell is not text, or a target empty.
        """
        path, count = self._own[split], 0
        side = split if self._is_shared and split in ("train", "dev") else None
        for row in self._rows(path, needs_targets):
            with bad_cell_at(row.place):
                source, *target = (check_text(cell) for cell in row.cells)
            if side and is_validation(source, self._data.dev_share) != (side == "dev"):
                continue
            if needs_targets and not target[0].strip():
                raise UserError(
                    f"{row.place}: needs a text to write in the column {self.target!r}. Received: an empty one. "
                    "Leave out its row."
                )
            count += 1
            yield Pair(source, target[0] if target else None, row.place)
        if not count and side:
            raise none_held_out(path, self._data.dev_share, side)
        if not count:
            where = "stdin" if path == STANDARD_STREAM else path
            raise UserError(f"{where}: needs at least one text. Received: none.")

    def _rows(self, path: str, needs_targets: bool) -> Iterator[Row]:
        """Iterates over rows of the source and, if needed, the target."""
        data = self._data
        options: dict[str, Any] = {"format": data.format, "header": tuple(data.columns) or None, "options": _OPTIONS}
        if needs_targets:
            return read_table(path, (self.source, self.target), **options)
        return read_texts(path, (self.source,), **options)
