"""The files of a task of tagging, read: words with their labels, and the entities that the labels mark."""

import collections
import contextlib
import functools
import os
import shutil
import sys
import tempfile

from keras_bert.errors import UserError
from keras_bert.tasks.tagging.label_schemes import SCHEMES, UnknownLabel, read_entities, told_scheme


class TaggedFiles:
    """The splits of a task, each file read once, when it is asked for.

    Args:
        task: a `TaggingTask`.
        paths: `{split: path}`.
        scheme: of `tasks.tagging.label_schemes.SCHEMES`, the files' own; each file's labels tell it where None.
        options: `{name: value}` that `task.reader` takes beside the path.

    Attributes:
        splits: their names.
        words: function (split) -> `TaggedWords`.
        entities: function (split) -> `Entities` of its own labels.
        notes: list of what a user should know of the files read so far, one line each.

    Raises:
        UserError: as `TaggingProblem`.
    """

    def __init__(self, task, paths, scheme, options):
        if scheme not in (None, *SCHEMES):
            raise UserError(f"scheme: needs one of {', '.join(SCHEMES)}. Received: {scheme!r}.")
        self._task, self._paths, self._scheme, self._options = task, dict(paths), scheme, options
        self.splits = tuple(self._paths)
        self.words = functools.cache(self._read_words)
        self.entities = functools.cache(self._read_entities)
        self.notes = []

    def _read_words(self, split):
        """The `TaggedWords` of a split."""
        reader = self._task.reader(self._path(split), **self._options)
        tagged = reader.whole()
        self.notes += reader.notes()
        return tagged

    def _path(self, split):
        if split not in self._paths:
            raise UserError(
                f"{self._task.name}: needs a file for the split {split!r}. "
                f"Received: {', '.join(self._paths) or 'none'}."
            )
        return self._paths[split]

    def windows(self, split, marks_entities):
        """Iterates over (`TaggedWords` of some sentences, the scheme in which entities are to be written there).

        Labels are needed for nothing but to tell the scheme, of which none is None, unless the labels mark entities.
        """
        with contextlib.ExitStack() as stack:
            path, scheme = self._path(split), self._scheme if marks_entities else None
            if marks_entities and not scheme:
                path = stack.enter_context(_readable_twice(path))
                scheme = self._told_scheme(path, split)
            reader = self._task.reader(path, labels_needed=False, **self._options)
            for tagged in reader.windows():
                yield tagged, scheme
            self.notes += reader.notes()

    def _read_entities(self, split):
        """The `Entities` of a split's own labels; says how many break their scheme."""
        tagged = self.words(split)
        try:
            entities = read_entities(tagged.labels, tagged.starts)
        except UnknownLabel as problem:
            raise UserError(
                f"{tagged.place(problem.word)}: needs O, or B-, I-, E- or S- and a type. "
                f"Received: {tagged.labels[problem.word]!r}. Give the entities' column, or take the task tokens."
            ) from None
        scheme = self._scheme or entities.scheme()
        breaks = entities.breaks(scheme)
        if len(breaks):
            self.notes.append(
                f"{tagged.origin}: {len(breaks):,} labels break {scheme.upper()} (the first: line "
                f"{tagged.lines[breaks[0]]}, {tagged.labels[breaks[0]]}); they are read as conlleval reads them."
            )
        return entities

    def _told_scheme(self, path, split):
        """The scheme of a file as its labels tell it; of one without that of training, or BIO."""
        told = collections.Counter()
        for tagged in self._task.reader(path, labels_needed=False, **self._options).windows():
            if not tagged.words:
                continue
            if tagged.labels is None or None in tagged.labels:
                break
            try:
                told += read_entities(tagged.labels, tagged.starts).told()
            except UnknownLabel:
                break
        else:
            return told_scheme(told, self._otherwise(split))
        return self._otherwise(split)

    def _otherwise(self, split):
        of_training = split != "train" and "train" in self._paths and self.words("train").labels is not None
        return self.entities("train").scheme() if of_training else "bio"


@contextlib.contextmanager
def _readable_twice(path):
    """The path itself, or, of "-", that of a file with what comes in, as long as the block lasts."""
    if path != "-":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.join(folder, "standard input")
        with open(kept, "wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        yield kept
