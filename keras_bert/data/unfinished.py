"""What an interrupted `prepare` left behind: which shards are finished, and what they were made of.

`state.json` in the folder of an unfinished work is written anew, whole or not at all, after every shard.
"""

import json

from keras_bert.data.held_out import SIDES
from keras_bert.data.shards import ShardSet
from keras_bert.errors import UserError
from keras_bert.files import atomic_write, exists, join, open_file, remove_file

_FILE = "state.json"
_FORMAT = 1


class UnfinishedWork:
    """The finished shards of both sides.

    Attributes:
        settings: mapping of what the bytes of the result depend on.
        sides: `{side: progress}`; a progress holds the shard writer's `meta`, how many of the side's `documents` these
            shards are made of, and the `empty_sentences` and `empty_documents` among them. Without shards it is empty.
    """

    def __init__(self, folder, settings):
        """Reads what `folder` holds.

        Raises:
            UserError: it was made with other settings, or a finished shard is missing or altered.
        """
        self._folder = folder
        self.settings = {"format": _FORMAT, **settings}
        self.sides = {side: {} for side in SIDES}
        if self.is_in(folder):
            self._read(join(folder, _FILE))

    def save(self):
        with atomic_write(join(self._folder, _FILE)) as stream:
            stream.write(json.dumps({"settings": self.settings, "sides": self.sides}))

    @staticmethod
    def is_in(folder):
        """Whether a folder holds the record of an unfinished work."""
        return exists(join(folder, _FILE))

    @classmethod
    def remove(cls, folder):
        """Removes the record from a folder that is finished."""
        remove_file(join(folder, _FILE))

    def shards(self):
        """How many are finished."""
        return sum(len(progress["meta"]["shards"]) for progress in self.sides.values() if progress)

    def _read(self, path):
        remedy = f"Remove {self._folder} and start over"
        try:
            with open_file(path) as stream:
                state = json.loads(stream.read())
            made_with, sides = state["settings"], state["sides"]
            if not any(sides.values()):
                return  # Nothing is finished that could have been made with other settings.
            self.sides = sides
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(f"{path}: is not the record of an unfinished prepare. {remedy}.") from None
        wanted = json.loads(json.dumps(self.settings))  # Tuples become lists, as they did in the file.
        for key in wanted:
            if made_with.get(key) != wanted[key]:
                raise UserError(
                    f"{self._folder}: holds shards of an unfinished prepare with another {key}. "
                    f"Received: {difference(made_with.get(key), wanted[key])}. {remedy}, or give what it began with."
                )
        for side, progress in self.sides.items():
            folder = join(self._folder, side)
            remove_file(join(folder, "meta.json"))
            if progress:
                try:
                    ShardSet(folder, progress["meta"]).verify()
                except UserError as error:
                    raise UserError(f"{str(error).rsplit('. ', 1)[0]}. {remedy}.") from None


def difference(before, now):
    """The first of two lists' entries that differ, or the two values."""
    if isinstance(before, list) and isinstance(now, list):
        for old, new in zip(before, now):
            if old != new:
                return f"{old}, now {new}"
        return f"{len(before)} entries, now {len(now)}"
    return f"{before!r}, now {now!r}"
