"""The files between the stages of a pipeline: tokenized blocks of documents, complete or absent."""

from __future__ import annotations

import contextlib
import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert.core.errors import UserError
from keras_bert.core.files import exists, join, list_folder, make_folder, open_file, remove_file, remove_folder
from keras_bert.core.terminal_bar import Bar, polled
from keras_bert.core.whole_files import atomic_write, rename_file
from keras_bert.data.shards.prepared_folder import PART_END, PARTS
from keras_bert.data.shards.shard_format import TokenizedDocuments, offsets

if TYPE_CHECKING:
    from keras_bert.data.pipeline.pieces import Piece

_ARRAYS = ("hashes", "token_counts", "tokens", "sentence_lengths", "document_lengths", "empty_sentences")
_MARKS = ("continuations", "phrases")  # Only in parts of marked text.
# Parts, and the records of pieces, start with the number of their source; see `Piece.name`.
_OF_ONE_SOURCE = re.compile(r"(\d{6})(-\d+\.(?:npz|json))")
_SOURCES = "sources"
DROPPED = "dropped"
_DAMAGED = (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError)


class PartFiles:
    """The folder of parts below the folder that is being prepared.

    A part is a block of documents, named by its place: `(source, block)`. All files are written under names of their
    own and renamed, so that it does no harm if a runner has the same work done twice.
    """

    def __init__(self, folder: str):
        self.folder = join(folder, PARTS)

    def has_part(self, source: int, block: int) -> bool:
        return exists(self._path(source, block))

    def write_part(self, source: int, block: int, hashes: np.ndarray, documents: TokenizedDocuments) -> None:
        """Writes the hashes (uint64 [documents]) and the tokens of documents."""
        arrays = {
            "hashes": hashes,
            "token_counts": documents.token_counts(),
            **{name: getattr(documents, name) for name in _ARRAYS[2:]},
        }
        marks = {name: getattr(documents, name) for name in _MARKS}
        arrays |= {name: array for name, array in marks.items() if array is not None}
        with atomic_write(self._path(source, block), "wb", self.folder) as stream:
            np.savez(stream, **arrays)

    @contextlib.contextmanager
    def open_part(self, source: int, block: int) -> Iterator[Part]:
        """Opens a part. Raises `UserError` if it, or what the block reads of it, is missing or damaged."""
        path = self._path(source, block)
        try:
            with open_file(path) as stream, np.load(stream, allow_pickle=False) as arrays:
                yield Part(arrays)
        except FileNotFoundError:
            raise UserError(f"{path}: is missing. Run the same command again.") from None
        except _DAMAGED as error:
            raise UserError(f"{path}: is damaged ({error}). Remove it and run the same command again.") from None

    def write_places(self, what: str, source: int, block: int, places: Iterable[np.ndarray]) -> None:
        """Writes places in a block, int64 [places], in any order and any number of arrays, under a name for them."""
        with atomic_write(self._places_path(what, source, block), "wb", self.folder) as stream:
            np.save(stream, np.sort(np.concatenate(list(places))))

    def places(self, what: str, source: int, block: int) -> np.ndarray:
        """What `write_places` wrote, in ascending order; empty if it wrote nothing."""
        path = self._places_path(what, source, block)
        if not exists(path):
            return np.zeros(0, np.int64)
        try:
            with open_file(path) as stream:
                return np.load(stream, allow_pickle=False)
        except _DAMAGED as error:
            raise UserError(f"{path}: is damaged ({error}). Remove it and run the same command again.") from None

    def dropped(self, source: int, block: int) -> np.ndarray:
        """The places of a part's documents that are duplicates of earlier ones: int64 [duplicates]."""
        return self.places(DROPPED, source, block)

    def write_record(self, name: str, values: Any) -> None:
        """Writes JSON values under a name, once the work that they describe is done."""
        with atomic_write(self._record_path(name), work_folder=self.folder) as stream:
            stream.write(json.dumps(values))

    def record(self, name: str) -> Any:
        """What `write_record` wrote, or None."""
        path = self._record_path(name)
        if not exists(path):
            return None
        try:
            with open_file(path) as stream:
                return json.loads(stream.read())
        except ValueError:
            raise UserError(f"{path}: is damaged. Remove it and run the same command again.") from None

    @contextlib.contextmanager
    def shown(self, what: str, pieces: Sequence[Piece], ending: str = "") -> Iterator[None]:
        """Shows during the block how much of the text is in pieces that have a record, named as they and `ending`."""
        has_sizes = all(piece.size for piece in pieces)
        weights = {f"{piece.name}{ending}.json": piece.size // piece.readers if has_sizes else 1 for piece in pieces}
        unit: dict[str, Any] = {"unit": "B", "unit_scale": True} if has_sizes else {"unit": " pieces"}
        # A stream of its own, because runs on this machine have file descriptor 2 withheld.
        with os.fdopen(os.dup(2), "w") as screen:
            bar = Bar(desc=what, total=sum(weights.values()), file=screen, **unit)
            with polled(bar, lambda: sum(weights.get(name, 0) for name in list_folder(self.folder))):
                yield

    def keep_for(self, sources: list[list[Any]]) -> bool:
        """Leaves what an earlier start finished for these sources, and removes all else from the folder.

        A file that was left out or added since then costs no other file's work. What depends on all of them is removed
        if they are not the same.

        Args:
            sources: JSON values that identify the content of each source.

        Returns: whether anything is left.
        """
        before = self.record(_SOURCES)
        if before != sources:
            self._renumber(before, sources)
        return any(map(_OF_ONE_SOURCE.fullmatch, list_folder(self.folder)))

    def is_for(self, sources: list[list[Any]]) -> bool:
        """Whether all that is in the folder was made for these sources."""
        return self.record(_SOURCES) == sources

    def _renumber(self, before: list[list[Any]] | None, sources: list[list[Any]]) -> None:
        aside = f"{self.folder}.aside"
        remove_folder(aside)
        make_folder(aside)
        # Without the list nothing is taken for finished, if this is interrupted.
        remove_file(self._record_path(_SOURCES))
        numbers = {json.dumps(source): number for number, source in enumerate(sources)}
        for name in list_folder(self.folder):
            found = _OF_ONE_SOURCE.fullmatch(name)
            number = numbers.get(json.dumps(before[int(found[1])])) if before and found else None
            if found and number is not None:
                rename_file(join(self.folder, name), join(aside, f"{number:06d}{found[2]}"))
        remove_folder(self.folder)
        make_folder(self.folder)
        for name in list_folder(aside):
            rename_file(join(aside, name), join(self.folder, name))
        remove_folder(aside)
        self.write_record(_SOURCES, sources)

    def _path(self, source: int, block: int) -> str:
        return join(self.folder, f"{source:06d}-{block:05d}{PART_END}")

    def _places_path(self, what: str, source: int, block: int) -> str:
        return join(self.folder, f"{source:06d}-{block:05d}.{what}.npy")

    def _record_path(self, name: str) -> str:
        return join(self.folder, f"{name}.json")


class Part:
    """A part that is open. What is not asked for is not read."""

    def __init__(self, arrays: Any):
        self._arrays = arrays

    def __getitem__(self, name: str) -> np.ndarray:
        """One of `hashes`, `token_counts`, `document_lengths` or `empty_sentences`: [documents]."""
        return self._arrays[name]

    def documents(self, places: np.ndarray) -> TokenizedDocuments:
        """The documents at these places, in this order."""
        lengths, sentence_lengths = self["document_lengths"], self["sentence_lengths"]
        sentences = _ranges(offsets(lengths), places)
        tokens = _ranges(offsets(sentence_lengths), sentences)
        return TokenizedDocuments(
            self["tokens"][tokens],
            sentence_lengths[sentences],
            lengths[places],
            self["empty_sentences"][places],
            *(self[name][tokens] if name in self._arrays else None for name in _MARKS),
        )


def _ranges(starts: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The places of all members of the groups at `places`, where group n is `starts[n]` to `starts[n + 1]`."""
    sizes = starts[places + 1] - starts[places]
    return np.repeat(starts[places] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
