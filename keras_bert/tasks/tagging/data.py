"""Reads the files of a tagging task: words with their labels, and the entities that the labels mark."""

import collections
import contextlib
import dataclasses
import functools
import itertools
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert.core.errors import UserError
from keras_bert.tasks.noise import Noise
from keras_bert.tasks.sources import file_of
from keras_bert.tasks.tagging.label_schemes import Entities, UnknownLabel, likeliest_scheme, read_entities
from keras_bert.tasks.tagging.tagged_words import TaggedWords
from keras_bert.tasks.tagging.task import TaggingTask


class TaggedFiles:
    """The splits of a task; each file is read once, when it is first needed.

    Args:
        scheme: the files' scheme, of `tasks.tagging.label_schemes.SCHEMES`; None to infer it from each file's labels.
        options: further arguments of `task.reader`.
        also_written: `{another word for a label in the files: the usual one}`.

    Attributes:
        words: function (split) -> its words.
        entities: function (split) -> the entities of its own labels.
        notes: what the user should know about the files read so far, one line each.

    Raises:
        UserError: as `TaggingProblem`.
    """

    def __init__(
        self,
        task: TaggingTask,
        paths: Mapping[str, str],
        scheme: str | None,
        options: Mapping[str, Any],
        also_written: Mapping[str | None, str],
    ):
        self._task, self._paths, self._scheme, self._options = task, dict(paths), scheme, options
        self._also_written = also_written
        self.splits = tuple(self._paths)
        self.words = functools.cache(self._read_words)
        self.entities = functools.cache(self._read_entities)
        self.notes: list[str] = []

    def scheme(self, split: str) -> str:
        """The scheme of a split's own labels, in which `predict` writes its answers too."""
        return self._scheme or self.entities(split).scheme(self._default_scheme(split))

    def _read_words(self, split: str) -> TaggedWords:
        reader = self._task.reader(file_of(self._task.name, self._paths, split), **self._options)
        tagged = reader.whole()
        self.notes += reader.notes()
        if tagged.labels and self._also_written:
            tagged.labels = [self._also_written.get(label, label) for label in tagged.labels]
        return tagged

    def windows(self, split: str, marks_entities: bool, by_document: bool) -> Iterator[tuple[TaggedWords, str | None]]:
        """Yields (the words of some sentences or documents, the scheme in which to write their entities).

        Labels are only read to infer the scheme, which is None if the labels do not mark entities.
        """
        with contextlib.ExitStack() as stack:
            path, scheme = file_of(self._task.name, self._paths, split), self._scheme if marks_entities else None
            if marks_entities and not scheme:
                path = stack.enter_context(_readable_twice(path))
                scheme = self._inferred_scheme(path, split)
            reader = self._task.reader(path, labels_needed=False, **self._options)
            for tagged in reader.windows(by_document):
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
        """The scheme that a file's labels follow; for a file without labels, the training file's scheme or BIO."""
        evidence: collections.Counter[str] = collections.Counter()
        for tagged in self._task.reader(path, labels_needed=False, **self._options).windows():
            if not tagged.words:
                continue
            labels: list[Any] | None = tagged.labels
            if labels is None or None in labels:
                break
            try:
                evidence += read_entities(labels, tagged.starts).evidence()
            except UnknownLabel:
                break
        else:
            return likeliest_scheme(evidence, self._default_scheme(split))
        return self._default_scheme(split)

    def _default_scheme(self, split: str) -> str:
        has_training = split != "train" and "train" in self._paths and self.words("train").labels is not None
        return self.entities("train").scheme() if has_training else "bio"


@contextlib.contextmanager
def _readable_twice(path: str) -> Iterator[str]:
    """The path or, for "-", the path of a temporary file with the content of stdin."""
    if path != "-":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.join(folder, "standard input")
        with open(kept, "wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        try:
            yield kept
        except UserError as error:
            raise UserError(str(error).replace(kept, "stdin")) from None


_INNER_BLANK = "\ue000"  # Private-use stand-in for a blank inside a word, which must not split it.
_BLANK, _WORD = re.compile(r"\s"), re.compile(r"\S+")


def noisy_words(tagged: TaggedWords, entities: Entities | None, noise: Noise) -> TaggedWords:
    """Sentences with noise in their words and in the blanks between them.

    The noise is applied to the words of a sentence joined by single blanks; the result is split at blanks. So a lost
    blank joins two words, an added one splits a word, and a word that loses all its characters disappears; a sentence
    that would lose all its words stays as it was. A new word has the label of the word it comes from. If it comes from
    several, it has the label of the first or, for entities, belongs to the first entity among them. Entities are marked
    in BIO anew: the first word of each has B.

    Args:
        entities: the entities that the labels mark; None if they mark none.
    """
    words: list[str] = []
    origins: list[list[int]] = []  # The old words that each new word comes from.
    starts = [0]
    for first, end in itertools.pairwise(tagged.starts.tolist()):
        for word, parts in _noisy_sentence(tagged.words[first:end], noise):
            words.append(word)
            origins.append([first + part for part in parts])
        starts.append(len(words))
    labels = tagged.labels
    if entities is not None:
        labels = _entity_labels(origins, starts, entities)
    elif labels is not None:
        labels = [labels[parts[0]] for parts in origins]
    lines = tagged.lines[[parts[0] for parts in origins]]
    return dataclasses.replace(tagged, words=words, labels=labels, starts=np.array(starts, np.int64), lines=lines)


def _noisy_sentence(words: Sequence[str], noise: Noise) -> list[tuple[str, list[int]]]:
    """[(new word, the indices of the words that it comes from)]."""
    plain = [_BLANK.sub(_INNER_BLANK, word) for word in words]
    edited = noise.edited(" ".join(plain))
    ends = np.cumsum([len(word) + 1 for word in plain]) - 1
    spans = [edited.span(end - len(word), end) for word, end in zip(plain, ends.tolist())]
    found, number, after = [], 0, 0
    for match in _WORD.finditer(edited.text):
        start, end = match.span()
        while number < len(spans) and spans[number][1] <= start:
            number += 1
        while after < len(spans) and spans[after][0] < end:
            after += 1
        parts = [part for part in range(number, after) if spans[part][0] < spans[part][1]]
        found.append((match.group().replace(_INNER_BLANK, " "), parts))
    return found or [(word, [part]) for part, word in enumerate(words)]


def _entity_labels(origins: Sequence[Sequence[int]], starts: Sequence[int], entities: Entities) -> list[str | None]:
    """The labels in BIO of new words that come from the words in `origins`."""
    entity_of = np.full(len(entities.prefix), -1)
    spans = entities.spans().tolist()
    for number, (first, end, _) in enumerate(spans):
        entity_of[first:end] = number
    numbers = [next((entity for entity in entity_of[parts].tolist() if entity >= 0), -1) for parts in origins]
    at_start, before, labels = set(starts), -1, list[str | None]()
    for word, number in enumerate(numbers):
        prefix = "I" if number == before and word not in at_start else "B"
        labels.append("O" if number < 0 else f"{prefix}-{entities.types[spans[number][2]]}")
        before = number
    return labels
