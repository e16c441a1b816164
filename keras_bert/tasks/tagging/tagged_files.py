"""The files of a task of tagging, read: words with their labels, and the entities that the labels mark."""

import functools

from keras_bert.data.label_schemes import SCHEMES, UnknownLabel, read_entities
from keras_bert.errors import UserError


class TaggedFiles:
    """The splits of a task, each file read once, when it is asked for.

    Args:
        task: a `TaggingTask`.
        paths: `{split: path}`.
        scheme: of `data.label_schemes.SCHEMES`, the files' own; each file's labels tell it where None.
        options: `{name: value}` that `task.read` takes beside the path.

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
        if split not in self._paths:
            raise UserError(
                f"{self._task.name}: needs a file for the split {split!r}. "
                f"Received: {', '.join(self._paths) or 'none'}."
            )
        tagged = self._task.read(self._paths[split], **self._options)
        self.notes += tagged.notes
        return tagged

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

    def scheme_of(self, split):
        """The scheme of a file; for one without labels that of training, or BIO."""
        if self._scheme:
            return self._scheme
        of_training = split != "train" and "train" in self._paths and self.words("train").labels is not None
        otherwise = self.entities("train").scheme() if of_training else "bio"
        return otherwise if self.words(split).labels is None else self.entities(split).scheme(otherwise)
