"""The record of an unfinished `prepare`: which shards are finished, and what they were made from.

`state.json` in the folder is replaced atomically after every shard.
"""

import json
from collections.abc import Mapping
from typing import Any

from keras_bert.data.corpus.held_out import SIDES
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.errors import UserError
from keras_bert.files import exists, join, list_folder, open_file, remove_file
from keras_bert.whole_files import atomic_write

PARTS = "parts"  # The folder of the files that a pipeline leaves for its later stages.
PART_END = ".npz"
_FILE = "state.json"
_FORMAT = 1


class UnfinishedWork:
    """The finished shards of both sides, read from the record in a folder if there is one.

    Args:
        folder: the folder of the work.
        settings: JSON values that the bytes of the result depend on.

    Attributes:
        folder: the folder of the work.
        settings: these and the format of the record.
        sides: `{side: progress}`. A progress has the shard writer's `meta`, how many of the side's `documents` these
            shards contain, and the `empty_sentences` and `empty_documents` among them. It is empty without shards.

    Raises:
        UserError: the record was made with other settings, or a finished shard is missing or altered.
    """

    folder: str
    settings: dict[str, Any]
    sides: dict[str, dict[str, Any]]

    def __init__(self, folder: str, settings: Mapping[str, Any]):
        self.folder = folder
        self.settings = {"format": _FORMAT, **settings}
        self.sides = {side: {} for side in SIDES}
        if self.is_in(folder):
            self._read(join(folder, _FILE))

    def save(self) -> None:
        """Writes the record."""
        with atomic_write(join(self.folder, _FILE)) as stream:
            stream.write(json.dumps({"settings": self.settings, "sides": self.sides}))

    @staticmethod
    def is_in(folder: str) -> bool:
        """Whether a folder has the record of unfinished work."""
        return exists(join(folder, _FILE))

    @classmethod
    def remove(cls, folder: str) -> None:
        """Removes the record from a finished folder."""
        remove_file(join(folder, _FILE))

    def shards(self) -> int:
        """How many shards are finished."""
        return sum(len(progress["meta"]["shards"]) for progress in self.sides.values() if progress)

    def parts(self) -> int:
        """How many parts are finished, for work that a pipeline does part by part."""
        return sum(name.endswith(PART_END) for name in list_folder(join(self.folder, PARTS)))

    def _read(self, path: str) -> None:
        remedy = f"Remove {self.folder} and start over"
        try:
            with open_file(path) as stream:
                state = json.loads(stream.read())
            made_with, sides = state["settings"], state["sides"]
            if not any(sides.values()) and not self.parts():
                return  # Without finished work, other settings do no harm.
            self.sides = sides
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(f"{path}: is not the record of an unfinished prepare. {remedy}.") from None
        wanted = json.loads(json.dumps(self.settings))  # Turns tuples into lists, as in the file.
        for key in wanted:
            if changed := difference(made_with.get(key), wanted[key]):
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


def difference(before: object, now: object) -> str:
    """The first entries of two lists that differ, or the two values; "" if they are equal.

    An older version knew less about each file: what it did not record is not compared.
    """
    if isinstance(before, list) and isinstance(now, list):
        for old, new in zip(before, now):
            recorded = new[: len(old)] if isinstance(old, list) and isinstance(new, list) else new
            if old != recorded:
                return f"{old}, now {new}"
        return "" if len(before) == len(now) else f"{len(before)} in all, now {len(now)}"
    return "" if before == now else f"{before!r}, now {now!r}"
