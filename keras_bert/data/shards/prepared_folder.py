"""The folder that `prepare` writes: who may write it, where the work is done, and when it is complete.

Until the folder is complete, its `state.json` records which shards are finished and what they were made from. The file
is replaced atomically after every shard.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keras_bert.core.errors import UserError
from keras_bert.core.files import (
    StrPath,
    content,
    exists,
    is_file,
    is_folder,
    is_remote,
    join,
    list_folder,
    remove_file,
    remove_folder,
)
from keras_bert.core.locks import NAME, require_own, take_folder
from keras_bert.core.whole_files import move_folder, require_name, write_file
from keras_bert.core.yaml_and_json import parse_json
from keras_bert.data.corpus.held_out import SIDES
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.data.shards.shard_format import is_complete
from keras_bert.text.vocabulary import Vocabulary, find_vocabulary

PARTS = "parts"  # The folder of the files that a pipeline leaves for its later stages; see `data.pipeline.parts`.
PART_END = ".npz"
_FILE = "state.json"
_FORMAT = 1


class UnfinishedWork:
    """The finished shards of both sides, read from the record in a folder if there is one.

    Args:
        settings: JSON values that the bytes of the result depend on.

    Attributes:
        sides: `{side: progress}`. A progress has the shard writer's `meta`, how many of the side's `documents` these
            shards contain, and the `empty_sentences` and `empty_documents` among them. It is empty without shards.

    Raises:
        UserError: the record was made with other settings, or a finished shard is missing or altered.
    """

    def __init__(self, folder: str, settings: Mapping[str, Any]):
        self.folder = folder
        self._settings = {"format": _FORMAT, **settings}
        self.sides: dict[str, dict[str, Any]] = {side: {} for side in SIDES}
        if self.is_in(folder):
            self._read(join(folder, _FILE))

    def save(self) -> None:
        """Writes the record."""
        write_file(join(self.folder, _FILE), json.dumps({"settings": self._settings, "sides": self.sides}))

    @staticmethod
    def is_in(folder: str) -> bool:
        """Whether a folder has the record of unfinished work."""
        return exists(join(folder, _FILE))

    def shards(self) -> int:
        """How many shards are finished."""
        return sum(len(progress["meta"]["shards"]) for progress in self.sides.values() if progress)

    def parts(self) -> int:
        """How many parts a pipeline has finished."""
        return sum(name.endswith(PART_END) for name in list_folder(join(self.folder, PARTS)))

    def _read(self, path: str) -> None:
        remedy = f"Remove {self.folder} and start over"
        try:
            state = parse_json(content(path))
            made_with, sides = {**state["settings"]}, {**state["sides"]}
            if set(sides) != set(SIDES) or not all(map(_is_progress, sides.values())):
                raise ValueError("sides of another form")
            if not any(sides.values()) and not self.parts():
                return  # Without finished work, other settings do no harm.
            self.sides = sides
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(f"{path}: is not the record of an unfinished prepare. {remedy}.") from None
        wanted = json.loads(json.dumps(self._settings))  # Turns tuples into lists, as in the file.
        for key in {**wanted, **made_with}:  # Some are recorded only if they are not the default.
            if changed := difference(made_with.get(key), wanted.get(key)):
                raise UserError(
                    f"{self.folder}: has shards of an unfinished prepare with another {key}. "
                    f"Received: {changed}. {remedy}, or give what it started with."
                )
        for side, progress in self.sides.items():
            folder = join(self.folder, side)
            remove_file(join(folder, "meta.json"))
            if progress:
                try:
                    ShardSet(folder, progress["meta"]).verify()
                except UserError as error:
                    raise UserError(f"{str(error).rsplit('. ', 1)[0]}. {remedy}.") from None


def _is_progress(value: Any) -> bool:
    """Whether a JSON value has the form of the progress of one side."""
    counts = {**value}
    return not counts or (is_complete(counts.pop("meta", None)) and all(isinstance(n, int) for n in counts.values()))


def difference(before: object, now: object) -> str:
    """The first entries of two lists that differ, or the two values; "" if they are equal.

    Older versions recorded fewer values of each file; only these are compared.
    """
    if isinstance(before, list) and isinstance(now, list):
        for old, new in zip(before, now):
            recorded = new[: len(old)] if isinstance(old, list) and isinstance(new, list) else new
            if old != recorded:
                return f"{old}, now {new}"
        return "" if len(before) == len(now) else f"{len(before)} in all, now {len(now)}"
    return "" if before == now else f"{before!r}, now {now!r}"


def is_prepared(path: str) -> bool:
    """Whether `prepare` wrote this folder completely."""
    return all(exists(join(path, side, "meta.json")) for side in SIDES) and find_vocabulary(path) is not None


@contextmanager
def prepared_folder(
    folder: StrPath, vocabulary: Vocabulary, settings: Mapping[str, Any]
) -> Iterator[tuple[UnfinishedWork, Callable[[], None]]]:
    """Holds the lock on `folder` during the block, which writes its shards; see `prepare` for where the work is done.

    If the block fails, finished work stays.

    Args:
        folder: a folder that does not exist or is empty.
        vocabulary: written into it last.
        settings: JSON values that the bytes of the result depend on.

    Yields:
        (the record of the work so far, a function that raises `UserError` if the lock was lost)

    Raises:
        UserError: the folder is not empty or has no name; the unfinished work in it is damaged or was started with
            other settings; or another process is preparing the same folder.
    """
    require_name(folder)
    folder = os.fspath(folder).rstrip("/")
    # Beside the folder, which only gets its name at the end. In a store it has its name from the start, and may be a
    # bucket, which has nothing beside it.
    path = join(folder, NAME) if is_remote(folder) else f"{folder}{NAME}"
    lock = take_folder(folder, path)
    try:
        # A process killed between renaming and the end of the work leaves the record in the finished folder.
        in_place = is_remote(folder) or UnfinishedWork.is_in(folder)
        partial = folder if in_place else f"{folder}.partial"
        if not (in_place and UnfinishedWork.is_in(folder)):
            _check_is_empty(folder)
        work = UnfinishedWork(partial, settings)
        if not _is_worth_keeping(work):
            _clear(partial)
            if in_place:
                work.save()  # Otherwise a folder with an unfinished first shard would look like someone else's.
        try:
            yield work, lambda: require_own(lock, folder)
            vocabulary.to_file(join(partial, vocabulary.file_name))
        except BaseException:
            if not _is_worth_keeping(work):
                _clear(partial)
            raise
        if not in_place:
            move_folder(partial, folder, last=vocabulary.file_name)
        remove_file(join(folder, _FILE))
        remove_folder(join(folder, PARTS))
    finally:
        lock.release()


def _is_worth_keeping(work: UnfinishedWork) -> bool:
    return bool(work.shards() or work.parts())


def _clear(folder: str) -> None:
    """Removes everything in a folder except its lock, and then the folder itself if it is empty."""
    for name in list_folder(folder):
        if name != NAME:
            path = join(folder, name)
            remove_folder(path) if is_folder(path) else remove_file(path)
    if not list_folder(folder):
        remove_folder(folder)


def _check_is_empty(folder: str) -> None:
    if is_file(folder):
        raise UserError(f"{folder}: needs a folder. Received: a file. Give another path.")
    names = [name for name in list_folder(folder) if name != NAME]
    if names:
        raise UserError(
            f"{folder}: needs a new or empty folder. Received: one that contains {names[0]}. Remove it or give another."
        )
