"""The schemes that mark entities by a label a word: IOB1, BIO (IOB2) and BIOES.

Whatever the scheme, an entity is where conlleval (Tjong Kim Sang, CoNLL-2000) sees one: it begins at B or S, and at I
or E after O, after another type, after E or S, or at a sentence's start; so labels that break their scheme have a
meaning too.
"""

import collections
import dataclasses

import numpy as np

SCHEMES = ("bio", "iob1", "bioes")
OUTSIDE = "O"
_PREFIXES = "OBIES"
_O, _B, _I, _E, _S = range(5)


class UnknownLabel(Exception):
    """A label that is neither O nor a prefix and a type; `word` is the index of its first word."""

    def __init__(self, word):
        super().__init__(word)
        self.word = word


@dataclasses.dataclass
class Entities:
    """Labels taken apart.

    Attributes:
        types: tuple of the types' names, sorted.
        prefix: int array [words], the place of the prefix in "OBIES".
        type: int array [words], the place of the type in `types`; -1 for O.
        at_start, at_end: bool arrays [words], whether a word is its sentence's first, last.
    """

    types: tuple
    prefix: np.ndarray
    type: np.ndarray
    at_start: np.ndarray
    at_end: np.ndarray

    @property
    def begins(self):
        """Bool array [words]: whether an entity begins at the word."""
        after, type_before = self._before()
        closed = (after == _O) | (after == _E) | (after == _S) | (type_before != self.type)
        return (self.prefix == _B) | (self.prefix == _S) | (self.prefix != _O) & closed

    def spans(self):
        """int array [entities, 3]: first word, one past the last, type; in their order."""
        inside = self.prefix != _O
        first = np.flatnonzero(self.begins)
        ends_after = inside & np.append(self.begins[1:] | ~inside[1:], True)
        return np.stack([first, np.flatnonzero(ends_after) + 1, self.type[first]], axis=1)

    def labels(self, scheme):
        """List of str: the same entities in a scheme of `SCHEMES`."""
        inside, begins = self.prefix != _O, self.begins
        prefix = np.where(inside, np.where(begins, _B, _I), _O)
        if scheme == "iob1":
            _, type_before = self._before()
            prefix[begins & (type_before != self.type)] = _I
        elif scheme == "bioes":
            ends = inside & np.append(begins[1:] | ~inside[1:], True)
            prefix[ends] = np.where(begins[ends], _S, _E)
        return [_label(_PREFIXES[code], self.types, type) for code, type in zip(prefix.tolist(), self.type.tolist())]

    def breaks(self, scheme):
        """int array: the words whose label cannot stand there in a scheme of `SCHEMES`."""
        before, type_before = self._before()
        goes_on = (type_before == self.type) & (self.prefix != _O)
        if scheme == "bio":
            broken = (self.prefix == _I) & ~goes_on
        elif scheme == "iob1":
            broken = (self.prefix == _B) & ~goes_on
        else:
            is_open = goes_on & ((before == _B) | (before == _I))
            needs_open = (self.prefix == _I) | (self.prefix == _E)
            # What stays open is broken at the word that leaves it so.
            closes_next = np.append((is_open & needs_open)[1:], False)
            leaves_open = ((self.prefix == _B) | (self.prefix == _I)) & ~closes_next
            return np.flatnonzero(needs_open & ~is_open | leaves_open)
        return np.flatnonzero(broken | (self.prefix == _E) | (self.prefix == _S))

    def scheme(self, otherwise="bio"):
        """The scheme of `SCHEMES` that fewest labels break; `otherwise` where the labels do not tell."""
        return told_scheme(self.told(), otherwise)

    def told(self):
        """What the labels tell of their scheme, counts that can be added up over parts of a file; see `told_scheme`."""
        of_bioes = (self.prefix == _E) | (self.prefix == _S)
        return collections.Counter(
            bioes=int(of_bioes.sum()), bio=len(self.breaks("bio")), iob1=len(self.breaks("iob1"))
        )

    def _before(self):
        """(prefix, type) of the word before, of O at a sentence's start."""
        prefix = np.where(self.at_start, _O, np.roll(self.prefix, 1))
        return prefix, np.where(self.at_start, -1, np.roll(self.type, 1))


def told_scheme(told, otherwise="bio"):
    """The scheme of `SCHEMES` that fewest labels break, by what `Entities.told`; `otherwise` where that is not clear.

    Labels that only BIOES has make it that.
    """
    if told["bioes"]:
        return "bioes"
    return otherwise if told["bio"] == told["iob1"] else "bio" if told["bio"] < told["iob1"] else "iob1"


def read_entities(labels, starts):
    """The `Entities` of labels.

    Args:
        labels: list of str, one a word.
        starts: int array [sentences + 1], where each sentence begins.

    Raises:
        UnknownLabel: one is neither O nor B-, I-, E- or S- and a type.
    """
    known = {label: _parsed(label) for label in set(labels)}
    if None in known.values():
        raise UnknownLabel(next(word for word, label in enumerate(labels) if known[label] is None))
    types = tuple(sorted({type for _, type in known.values()} - {None}))
    number = {None: -1, **{type: index for index, type in enumerate(types)}}
    codes = {label: (_PREFIXES.index(prefix), number[type]) for label, (prefix, type) in known.items()}
    pairs = np.array([codes[label] for label in labels], np.int64).reshape(-1, 2)
    at_start, at_end = np.zeros(len(labels), bool), np.zeros(len(labels), bool)
    at_start[starts[:-1]] = at_end[np.asarray(starts[1:]) - 1] = True
    return Entities(types, pairs[:, 0], pairs[:, 1], at_start, at_end)


def bio_labels(types):
    """The labels of a head for entities of these types."""
    return (OUTSIDE, *(f"{prefix}-{type}" for type in types for prefix in "BI"))


def _parsed(label):
    """(prefix, type or None); None for what is no label of an entity."""
    if label == OUTSIDE:
        return OUTSIDE, None
    prefix, dash, type = label.partition("-")
    return (prefix, type) if dash and type and prefix in tuple("BIES") else None


def _label(prefix, types, type):
    return OUTSIDE if prefix == OUTSIDE else f"{prefix}-{types[type]}"
