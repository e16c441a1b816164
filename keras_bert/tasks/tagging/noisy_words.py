"""Noise in sentences of labelled words; the labels move with the words."""

import dataclasses
import itertools
import re
from collections.abc import Sequence

import numpy as np

from keras_bert.tasks.noise.noise import Noise
from keras_bert.tasks.tagging.label_schemes import Entities
from keras_bert.tasks.tagging.tagged_words import TaggedWords

_INNER_BLANK = "\ue000"  # Stands for a blank inside a word, which separates nothing; from the private use area.
_BLANK, _WORD = re.compile(r"\s"), re.compile(r"\S+")


def noisy_words(tagged: TaggedWords, entities: Entities | None, noise: Noise) -> TaggedWords:
    """Sentences with noise in their words and in the blanks between them.

    The noise is in the sentence as its words joined by single blanks; what then stands between blanks is a word. So a
    lost blank joins two words, an added one splits a word, and a word whose characters are all lost is gone; a sentence
    of which nothing is left stays as it was. A new word has the label of the word it was part of. One that was part of
    several has that of the first or, for entities, belongs to the first entity among them. Entities are marked in BIO
    again: the first word of each has B.

    Args:
        tagged: the sentences.
        entities: the entities that the labels mark; None if they mark none.
        noise: the noise.
    """
    words: list[str] = []
    origins: list[list[int]] = []  # Of each new word, the words that it was part of.
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
    return dataclasses.replace(
        tagged, words=words, labels=labels, starts=np.array(starts, np.int64), lines=lines, source=None, reader=None
    )


def _noisy_sentence(words: Sequence[str], noise: Noise) -> list[tuple[str, list[int]]]:
    """[(new word, the numbers of the words that it was part of)]."""
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
    """The labels in BIO of words that were part of others."""
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
