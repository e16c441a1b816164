"""The files between the stages of a pipeline: tokenized blocks of documents, written completely or not at all."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from keras_bert.core import files
from keras_bert.core.array_files import Arrays, DamagedArrays, open_arrays, read_array, write_array
from keras_bert.core.errors import UserError, reason
from keras_bert.core.files import join
from keras_bert.core.whole_files import atomic_write, write_file
from keras_bert.core.yaml_and_json import parse_json
from keras_bert.data.shards.prepared_folder import PART_END, PARTS
from keras_bert.data.shards.shard_format import TokenizedDocuments
from keras_bert.data.windows import offsets

PartName = tuple[str, int]  # (key of a source, number of a block); see `pieces.Piece`.

_HEADER = ("hashes", "token_counts", "document_lengths", "empty_sentences")
_MARKS = ("continuations", "phrases")  # Only in parts of marked text.
# The files that depend on a single source: parts, and the records of pieces.
_OF_ONE_SOURCE = re.compile(r"([0-9a-f]{16})-\d+\.(?:npz|json)")
_SOURCES = "sources"
DROPPED = "dropped"  # The places of a part's documents that are duplicates of earlier ones.


class PartFiles:
    """The folder of parts below the folder that is being prepared.

    A part is a block of documents. All files are written under temporary names and renamed, so that a runner may
    repeat work.
    """

    def __init__(self, folder: str):
        self.folder = join(folder, PARTS)

    def has_part(self, name: PartName) -> bool:
        return files.exists(self._path(name, PART_END))

    def write_part(self, name: PartName, hashes: np.ndarray, documents: TokenizedDocuments) -> None:
        """Writes the hashes (uint64 [documents]) and the tokens of documents."""
        arrays = {**vars(documents), "hashes": hashes, "token_counts": documents.token_counts()}
        with atomic_write(self._path(name, PART_END), "wb", self.folder) as stream:
            np.savez(stream, **{key: array for key, array in arrays.items() if array is not None})

    @contextlib.contextmanager
    def open_part(self, name: PartName) -> Iterator[Part]:
        """Opens a part. Raises `UserError` if it is missing or damaged, even if only reading in the block shows it."""
        path = self._path(name, PART_END)
        try:
            with open_arrays(path) as arrays:
                yield Part(arrays)
        except FileNotFoundError:
            raise UserError(f"{path}: is missing. Run the same command again.") from None
        except (DamagedArrays, ValueError, IndexError) as error:  # Arrays of other lengths, too.
            raise _damaged(path, f" ({reason(error)})") from None

    def write_places(self, what: str, name: PartName, places: Iterable[np.ndarray]) -> None:
        """Writes places in a part under the name `what`, sorted: the arrays, int64 [places] each, in any order."""
        write_array(self._path(name, f".{what}.npy"), np.sort(np.concatenate(list(places))), self.folder)

    def places(self, what: str, name: PartName) -> np.ndarray:
        """The places that `write_places` wrote, in ascending order: int64 [places], empty if it wrote none."""
        path = self._path(name, f".{what}.npy")
        if not files.exists(path):
            return np.zeros(0, np.int64)
        try:
            return read_array(path)
        except DamagedArrays as error:
            raise _damaged(path, f" ({error})") from None

    def write_record(self, name: str, values: Any) -> None:
        """Writes JSON values under a name, to be called once the work that they describe is done."""
        write_file(self._record_path(name), json.dumps(values), self.folder)

    def record(self, name: str) -> Any:
        """The values that `write_record` wrote, or None."""
        return _read_record(self._record_path(name))

    def records(self, names: Iterable[str]) -> list[Any]:
        """The `record` of each name."""
        return files.map_paths(_read_record, list(map(self._record_path, names)))

    def keep_for(self, keys: Sequence[str], others: Sequence[str] = ()) -> bool:
        """Keeps the work that an earlier start finished for these sources, and removes all other files.

        The work on one source is kept even if others have been added or left out since then; work that depends on all
        sources is not.

        Args:
            keys: the keys of all sources, in order.
            others: folders whose content depends on all sources.

        Returns: whether any work on a source is left.
        """
        if self.record(_SOURCES) != keys:
            # Removed first: if this is interrupted, nothing that depends on all sources will count as finished.
            files.remove_file(self._record_path(_SOURCES))
            for folder in others:
                files.remove_folder(folder)
            wanted = set(keys)
            for name in files.list_folder(self.folder):
                found = _OF_ONE_SOURCE.fullmatch(name)
                if found is None or found[1] not in wanted:
                    files.remove_file(join(self.folder, name))
            self.write_record(_SOURCES, keys)
        return any(map(_OF_ONE_SOURCE.fullmatch, files.list_folder(self.folder)))

    def _path(self, name: PartName, ending: str) -> str:
        key, block = name
        return join(self.folder, f"{key}-{block:05d}{ending}")

    def _record_path(self, name: str) -> str:
        return join(self.folder, f"{name}.json")


class Part:
    """An open part. Arrays load lazily."""

    def __init__(self, arrays: Arrays):
        self._arrays = arrays

    def header(self) -> tuple[np.ndarray, ...]:
        """Return (hashes, token counts, sentence counts, counts of empty sentences), each [documents]."""
        return tuple(self._arrays[name] for name in _HEADER)

    def hashes(self) -> np.ndarray:
        """uint64 [documents]."""
        return self._arrays["hashes"]

    def documents(self, places: np.ndarray) -> TokenizedDocuments:
        """The documents at these places, in this order."""
        lengths, sentence_lengths = self._arrays["document_lengths"], self._arrays["sentence_lengths"]
        sentences = _members(offsets(lengths), places)
        tokens = _members(offsets(sentence_lengths), sentences)
        return TokenizedDocuments(
            self._arrays["tokens"][tokens],
            sentence_lengths[sentences],
            lengths[places],
            self._arrays["empty_sentences"][places],
            *(self._arrays[name][tokens] if name in self._arrays else None for name in _MARKS),
        )


def _members(starts: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The places of all members of these groups, where group n is `starts[n]` to `starts[n + 1]`."""
    sizes = starts[groups + 1] - starts[groups]
    return np.repeat(starts[groups] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def _read_record(path: str) -> Any:
    if not files.exists(path):
        return None
    try:
        return parse_json(files.content(path))
    except ValueError:
        raise _damaged(path) from None


def _damaged(path: str, why: str = "") -> UserError:
    return UserError(f"{path}: is damaged{why}. Remove it and run the same command again.")
