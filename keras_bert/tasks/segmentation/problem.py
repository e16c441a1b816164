"""Word segmentation as a task for fine-tuning: where words begin in texts without blanks."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np

from keras_bert.config.finetuning import TaskDataConfig
from keras_bert.config.heads import BIOES, SegmentationConfig
from keras_bert.tasks.noise.noise import Noise
from keras_bert.tasks.segmentation.segmented_texts import LABELS, begins, word_labels, words_of
from keras_bert.tasks.tagging.problem import TaggingProblem
from keras_bert.tasks.tagging.tagged_words import TaggedWords


class SegmentationProblem(TaggingProblem):
    """The task `segment`. The answers are the labels, one per character.

    A text is its characters without blanks, each laid out as a word of its own and labelled B, I, E or S: the
    beginning, the inside or the end of a word, or a word by itself. A CRF allows no other order. Of `config.data`, the
    first of `texts` is the column of a table that holds the texts.
    """

    head: SegmentationConfig

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("f1", "precision", "recall")

    def described(self) -> dict[str, Any]:
        described = {name: value for name, value in super().described().items() if name not in self._columns}
        return {**described, "texts": self._config.data.texts[:1]}

    def evaluate(self, split: str, answers: list[str]) -> dict[str, float]:
        """The scores of the words: one is right if it begins and ends where it should (Sproat and Emerson 2003)."""
        tagged = self._words(split)
        found, true = (_word_spans(begins(labels), tagged.starts) for labels in (answers, tagged.labels))
        right = len(found & true)
        precision, recall = right / len(found), right / len(true)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        return {"f1": f1, "precision": precision, "recall": recall}

    def confusion(self, split: str, answers: list[str]) -> None:
        return None

    def _reader_options(self, data: TaskDataConfig) -> dict[str, Any]:
        return {**super()._reader_options(data), "text": data.texts[0], "format": data.format}

    def _new_head(self) -> SegmentationConfig:
        return SegmentationConfig(LABELS, BIOES)

    def _noisy_words(self, split: str) -> TaggedWords:
        assert self.noise is not None
        return _noisy_texts(self._files.words(split), self.noise)


def _word_spans(begins: np.ndarray, starts: np.ndarray) -> set[tuple[int, int]]:
    """(first character, one past the last) of all words of texts, the first of which always begins a word."""
    firsts = begins.copy()
    firsts[starts[:-1]] = True
    return set(itertools.pairwise([*np.flatnonzero(firsts).tolist(), len(firsts)]))


def _noisy_texts(tagged: TaggedWords, noise: Noise) -> TaggedWords:
    """Texts with noise in them, as their words joined by blanks; what a word became is still that word."""
    characters: list[str] = []
    labels: list[str | None] = []
    lines: list[int] = []
    starts = [0]
    is_first = begins(tagged.labels)
    for first, end in itertools.pairwise(tagged.starts.tolist()):
        words = words_of(tagged.words[first:end], is_first[first:end])
        edited = noise.edited(" ".join(words))
        ends = np.cumsum([len(word) + 1 for word in words]) - 1
        spans = (edited.span(last - len(word), last) for word, last in zip(words, ends.tolist()))
        new = ["".join(edited.text[start:last].split()) for start, last in spans]
        for character, label in word_labels([word for word in new if word] or words):
            characters.append(character)
            labels.append(label)
        lines += [int(tagged.lines[first])] * (len(characters) - len(lines))
        starts.append(len(characters))
    return dataclasses.replace(
        tagged,
        words=characters,
        labels=labels,
        starts=np.array(starts, np.int64),
        lines=np.array(lines, np.int64),
        source=None,
        reader=None,
    )
