"""The schemes that mark entities with one label per word: IOB1, BIO (IOB2) and BIOES.

In every scheme, entities are those that conlleval (Tjong Kim Sang, CoNLL-2000) finds or, with S, its later ports: an
entity starts at B or S, and at I or E after O, after another type, after E or S, or at the start of a sentence. Labels
that break their scheme therefore have a meaning too.
"""

import collections
import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from keras_bert.config.finetuning import BIO

SCHEMES = ("bio", "iob1", "bioes")
OUTSIDE = "O"
_PREFIXES = "OBIES"
_O, _B, _I, _E, _S = range(5)


class UnknownLabel(Exception):
    """A label that is neither O nor a prefix and a type; `word` is the index of the first word that has it."""

    def __init__(self, word: int):
        super().__init__(word)
        self.word = word


@dataclasses.dataclass
class Entities:
    """Labels split into prefix and type.

    Attributes:
        types: the names of the types, sorted.
        prefix: int [words], the index of the prefix in "OBIES".
        type: int [words], the index of the type in `types`; -1 for O.
        at_start: bool [words], whether a word is the first of its sentence.
    """

    types: tuple[str, ...]
    prefix: np.ndarray
    type: np.ndarray
    at_start: np.ndarray

    @property
    def begins(self) -> np.ndarray:
        """bool [words]: whether an entity starts at the word."""
        after, type_before = self._before()
        closed = (after == _O) | (after == _E) | (after == _S) | (type_before != self.type)
        return (self.prefix == _B) | (self.prefix == _S) | (self.prefix != _O) & closed

    @property
    def ends(self) -> np.ndarray:
        """bool [words]: whether an entity ends with the word."""
        inside = self.prefix != _O
        return inside & np.append(self.begins[1:] | ~inside[1:], True)

    def spans(self) -> np.ndarray:
        """int [entities, 3]: first word, one past the last word, type; in the order of the text."""
        first = np.flatnonzero(self.begins)
        return np.stack([first, np.flatnonzero(self.ends) + 1, self.type[first]], axis=1)

    def written(self) -> list[str]:
        """The labels as they are, one per word."""
        pairs = zip(self.prefix.tolist(), self.type.tolist())
        return [OUTSIDE if prefix == _O else f"{_PREFIXES[prefix]}-{self.types[type]}" for prefix, type in pairs]

    def labels(self, scheme: str) -> list[str]:
        """The labels of the same entities in a scheme of `SCHEMES`."""
        return self.in_scheme(scheme).written()

    def in_scheme(self, scheme: str) -> "Entities":
        """The same entities, marked in a scheme of `SCHEMES`."""
        inside, begins = self.prefix != _O, self.begins
        prefix = np.where(inside, np.where(begins, _B, _I), _O)
        if scheme == "iob1":
            _, type_before = self._before()
            prefix[begins & (type_before != self.type)] = _I
        elif scheme == "bioes":
            ends = self.ends
            prefix[ends] = np.where(begins[ends], _S, _E)
        return dataclasses.replace(self, prefix=prefix)

    def breaks(self, scheme: str) -> np.ndarray:
        """int [n]: the words whose label is invalid in a scheme of `SCHEMES`."""
        before, type_before = self._before()
        goes_on = (type_before == self.type) & (self.prefix != _O)
        if scheme == "bio":
            broken = (self.prefix == _I) & ~goes_on
        elif scheme == "iob1":
            broken = (self.prefix == _B) & ~goes_on
        else:
            is_open = goes_on & ((before == _B) | (before == _I))
            needs_open = (self.prefix == _I) | (self.prefix == _E)
            # An entity that is never closed counts as a break at the word that leaves it open.
            closes_next = np.append((is_open & needs_open)[1:], False)
            leaves_open = ((self.prefix == _B) | (self.prefix == _I)) & ~closes_next
            return np.flatnonzero(needs_open & ~is_open | leaves_open)
        return np.flatnonzero(broken | (self.prefix == _E) | (self.prefix == _S))

    def scheme(self, otherwise: str = "bio") -> str:
        """The scheme of `SCHEMES` that the fewest labels break; `otherwise` if that is ambiguous."""
        return likeliest_scheme(self.evidence(), otherwise)

    def evidence(self) -> collections.Counter[str]:
        """Counts that `likeliest_scheme` compares, to be added up over the parts of a file."""
        only_bioes = (self.prefix == _E) | (self.prefix == _S)
        return collections.Counter(
            bioes=int(only_bioes.sum()), bio=len(self.breaks("bio")), iob1=len(self.breaks("iob1"))
        )

    def _before(self) -> tuple[np.ndarray, np.ndarray]:
        """(prefix, type) of the previous word, or of O at the start of a sentence."""
        prefix = np.where(self.at_start, _O, np.roll(self.prefix, 1))
        return prefix, np.where(self.at_start, -1, np.roll(self.type, 1))


def likeliest_scheme(evidence: Mapping[str, int], otherwise: str = "bio") -> str:
    """The scheme of `SCHEMES` that the fewest labels break, by `Entities.evidence`; `otherwise` if that is ambiguous.

    A single label that only BIOES has decides for BIOES.
    """
    if evidence["bioes"]:
        return "bioes"
    return otherwise if evidence["bio"] == evidence["iob1"] else "bio" if evidence["bio"] < evidence["iob1"] else "iob1"


def read_entities(labels: Sequence[str], starts: Sequence[int] | np.ndarray) -> Entities:
    """Splits labels into prefixes and types.

    Args:
        labels: one label per word.
        starts: int [sentences + 1], where each sentence starts.

    Raises:
        UnknownLabel: a label is neither O nor B-, I-, E- or S- with a type.
    """
    known = {label: _parsed(label) for label in set(labels)}
    if None in known.values():
        raise UnknownLabel(next(word for word, label in enumerate(labels) if known[label] is None))
    parsed = {label: pair for label, pair in known.items() if pair is not None}
    types = tuple(sorted({type for _, type in parsed.values() if type is not None}))
    number: dict[str | None, int] = {None: -1, **{type: index for index, type in enumerate(types)}}
    codes = {label: (_PREFIXES.index(prefix), number[type]) for label, (prefix, type) in parsed.items()}
    pairs = np.array([codes[label] for label in labels], np.int64).reshape(-1, 2)
    at_start = np.zeros(len(labels), bool)
    first, end = np.asarray(starts[:-1], np.int64), np.asarray(starts[1:], np.int64)
    at_start[first[first < end]] = True  # A sentence may have no words.
    return Entities(types, pairs[:, 0], pairs[:, 1], at_start)


def scheme_labels(types: Sequence[str], scheme: str) -> tuple[str, ...]:
    """The labels of a head that learns entities of these types in BIO or BIOES."""
    return (OUTSIDE, *(f"{prefix}-{type}" for type in types for prefix in ("BI" if scheme == "bio" else "BIES")))


def learned_scheme(labels: Sequence[str]) -> str:
    """The scheme, BIO or BIOES, of labels from `scheme_labels`."""
    return "bioes" if any(label.startswith(("E-", "S-")) for label in labels) else "bio"


def _parsed(label: str) -> tuple[str, str | None] | None:
    """(prefix, type or None) of a label; None if it is not a valid label."""
    if label == OUTSIDE:
        return OUTSIDE, None
    prefix, dash, type = label.partition("-")
    return (prefix, type) if dash and type and prefix in tuple("BIES") else None


_OPEN, _GOES_ON = ("B", "I"), ("I", "E")  # Prefixes after which an entity is open, and those that need an open one.


def forbidden_transitions(labels: Sequence[str], scheme: str | None) -> np.ndarray:
    """bool [labels + 1, labels + 1]: whether a label (row) may not be followed by another (column).

    The last row stands for the start of a sentence, the last column for its end.

    Args:
        labels: O, or a prefix with or without a type, such as B-PER or B.
        scheme: `BIO`, `BIOES` (with or without O), or None for other labels, which may follow in any order.
    """
    size = len(labels) + 1
    forbidden = np.zeros((size, size), bool)
    if scheme is None:
        return forbidden
    # The start and the end of a sentence act like an O.
    parts = [(prefix, type) for prefix, _, type in (label.partition("-") for label in (*labels, "O"))]
    for row, (before, type_before) in enumerate(parts):
        for column, (after, type_after) in enumerate(parts):
            is_open = before in _OPEN and (after in _GOES_ON) and type_before == type_after
            if scheme == BIO:
                forbidden[row, column] = after == "I" and not is_open
            else:
                forbidden[row, column] = (before in _OPEN or after in _GOES_ON) and not is_open
    forbidden[-1, -1] = False  # Sentences are not empty.
    return forbidden
