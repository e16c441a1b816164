"""Reads the files of a tagging task: words with their labels, and the entities that the labels mark."""

import collections
import contextlib
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from keras_bert.errors import UserError
from keras_bert.tasks.examples.split_files import file_of
from keras_bert.tasks.tagging.label_schemes import SCHEMES, Entities, UnknownLabel, read_entities, told_scheme
from keras_bert.tasks.tagging.tagged_words import TaggedWords
from keras_bert.tasks.tagging.tasks import TaggingTask


class TaggedFiles:
    """The splits of a task; each file is read once, when it is first needed.

    Args:
        task: the task.
        paths: `{split: path}`.
        scheme: the files' scheme, of `tasks.tagging.label_schemes.SCHEMES`; None to infer it from each file's labels.
        options: further arguments of `task.reader`.

    Attributes:
        splits: the names of the splits.
        words: function (split) -> its words.
        entities: function (split) -> the entities of its own labels.
        notes: what the user should know about the files read so far, one line each.

    Raises:
        UserError: as `TaggingProblem`.
    """

    splits: tuple[str, ...]
    words: Callable[[str], TaggedWords]
    entities: Callable[[str], Entities]
    notes: list[str]

    def __init__(self, task: TaggingTask, paths: Mapping[str, str], scheme: str | None, options: Mapping[str, Any]):
        if scheme not in (None, *SCHEMES):
            raise UserError(f"data.scheme: needs one of {', '.join(SCHEMES)}. Received: {scheme!r}.")
        self._task, self._paths, self._scheme, self._options = task, dict(paths), scheme, options
        self.splits = tuple(self._paths)
        self.words = functools.cache(self._read_words)
        self.entities = functools.cache(self._read_entities)
        self.notes = []

    def scheme(self, split: str) -> str:
        """The scheme of a split's own labels, in which `predict` writes its answers too."""
        return self._scheme or self.entities(split).scheme(self._default_scheme(split))

    def _read_words(self, split: str) -> TaggedWords:
        reader = self._task.reader(file_of(self._task.name, self._paths, split), **self._options)
        tagged = reader.whole()
        self.notes += reader.notes()
        return tagged

    def windows(self, split: str, marks_entities: bool) -> Iterator[tuple[TaggedWords, str | None]]:
        """Yields (the words of some sentences, the scheme in which to write their entities).

        Labels are only read to infer the scheme, which is None if the labels do not mark entities.
        """
        with contextlib.ExitStack() as stack:
            path, scheme = file_of(self._task.name, self._paths, split), self._scheme if marks_entities else None
            if marks_entities and not scheme:
                path = stack.enter_context(_readable_twice(path))
                scheme = self._inferred_scheme(path, split)
            reader = self._task.reader(path, labels_needed=False, **self._options)
            for tagged in reader.windows():
                yield tagged, scheme
            self.notes += reader.notes()

    def _read_entities(self, split: str) -> Entities:
        """The entities of a split's own labels; notes how many labels break their scheme."""
        tagged = self.words(split)
        labels: list[Any] = tagged.labels or []
        try:
            entities = read_entities(labels, tagged.starts)
        except UnknownLabel as problem:
            raise UserError(
                f"{tagged.place(problem.word)}: needs O, or B-, I-, E- or S- and a type. "
                f"Received: {labels[problem.word]!r}. Give the entities' column, or use the task tokens."
            ) from None
        scheme = self._scheme or entities.scheme()
        breaks = entities.breaks(scheme)
        if len(breaks):
            self.notes.append(
                f"{tagged.origin}: {len(breaks):,} labels break {scheme.upper()} (the first: line "
                f"{tagged.lines[breaks[0]]}, {labels[breaks[0]]}); they are read as conlleval reads them."
            )
        return entities

    def _inferred_scheme(self, path: str, split: str) -> str:
        """The scheme that a file's labels follow; for a file without labels that of training, or BIO."""
        told: collections.Counter[str] = collections.Counter()
        for tagged in self._task.reader(path, labels_needed=False, **self._options).windows():
            if not tagged.words:
                continue
            labels: list[Any] | None = tagged.labels
            if labels is None or None in labels:
                break
            try:
                told += read_entities(labels, tagged.starts).told()
            except UnknownLabel:
                break
        else:
            return told_scheme(told, self._default_scheme(split))
        return self._default_scheme(split)

    def _default_scheme(self, split: str) -> str:
        has_training = split != "train" and "train" in self._paths and self.words("train").labels is not None
        return self.entities("train").scheme() if has_training else "bio"


@contextlib.contextmanager
def _readable_twice(path: str) -> Iterator[str]:
    """The path or, for "-", that of a temporary file with the content of stdin."""
    if path != "-":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.join(folder, "standard input")
        with open(kept, "wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        yield kept
