"""Word segmentation as a task for fine-tuning: where words begin in texts without blanks."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.config.finetuning import BIOES, TaskDataConfig
from keras_bert.core.errors import UserError
from keras_bert.core.program import PROGRAM
from keras_bert.export.serving_function import serving_function
from keras_bert.inference.loading import load_folder
from keras_bert.tasks.kind import kind_of_task
from keras_bert.tasks.noise import Noise
from keras_bert.tasks.problem import Problem
from keras_bert.tasks.segmentation.data import LABELS, begins, word_labels, words_of
from keras_bert.tasks.segmentation.task import SEGMENT, SegmentationConfig
from keras_bert.tasks.tagging.problem import TaggingProblem
from keras_bert.tasks.tagging.scores import precision_recall_f1
from keras_bert.tasks.tagging.tagged_words import TaggedWords


class SegmentationProblem(TaggingProblem):
    """The task `segment`. The answers are the labels, one per character.

    Each character of a text, blanks left out, is laid out as a word of its own and labelled B, I, E or S: the
    beginning, the inside or the end of a word, or a word by itself. A CRF rules out impossible sequences. The first of
    `config.data.texts` is the column of a table that holds the texts.
    """

    metric_names = ("f1", "precision", "recall")

    head: SegmentationConfig

    def task_record(self) -> dict[str, Any]:
        task_record = {name: value for name, value in super().task_record().items() if name not in self._columns}
        return {**task_record, "texts": self._config.data.texts[:1]}

    def evaluate(self, split: str, answers: list[str]) -> dict[str, float]:
        """The scores of the words; one is correct if both its boundaries are (Sproat and Emerson 2003)."""
        tagged = self._words(split)
        found, true = (_word_spans(begins(labels), tagged.starts) for labels in (answers, tagged.labels))
        scores = precision_recall_f1(len(found & true), len(found), len(true))
        return {"f1": scores["f1"], **scores}

    def by_example(self, split: str, answers: list[str]) -> dict[str, np.ndarray]:
        return {}  # The tagger's would be per character, but the scores are per word.

    def confusion(self, split: str, answers: list[str]) -> None:
        return None

    def require_different_answers(self) -> None:
        tagged = self._words("train")
        if begins(tagged.labels).sum() < len(tagged.starts):  # `starts` has one more than there are texts.
            raise UserError(
                f"{tagged.origin}: needs texts of several words to train on, with blanks between them. Received: one "
                "word in each text. Separate the words."
            )

    def _reader_options(self, data: TaskDataConfig) -> dict[str, Any]:
        return {"text": data.texts[0], "format": data.format}

    def _new_head(self) -> SegmentationConfig:
        return SegmentationConfig(LABELS, BIOES, bilstm_size=self._config.head.bilstm_size)

    def _noisy_words(self, split: str) -> TaggedWords:
        assert self.noise is not None
        return _noisy_texts(self._files.words(split), self.noise)


def _word_spans(begins: np.ndarray, starts: np.ndarray) -> set[tuple[int, int]]:
    """(first character, one past the last) of all words; the first character of a text always begins one."""
    firsts = begins.copy()
    firsts[starts[:-1]] = True
    return set(itertools.pairwise([*np.flatnonzero(firsts).tolist(), len(firsts)]))


def _noisy_texts(tagged: TaggedWords, noise: Noise) -> TaggedWords:
    """Texts with noise, added to their words joined by blanks; whatever a word becomes remains one word."""
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
        tagged, words=characters, labels=labels, starts=np.array(starts, np.int64), lines=np.array(lines, np.int64)
    )


def set_restored_spaces(problem: Problem, model: str | None) -> None:
    """Makes a problem's texts get a blank between the words that a model finds; existing blanks stay.

    Args:
        model: a model fine-tuned on the task `segment`: a run folder, a model folder, or hf:NAME; None for none.

    Raises:
        UserError: there is no such model, it was trained on another task, or the problem does not classify texts.
    """
    if model is None:
        return
    if not problem.takes_restored_spaces:
        raise UserError(f"--restore-spaces: needs a task that classifies texts. Received: {problem.task.name}.")
    folder = open_model_folder(model)
    if folder.task_kind is not kind_of_task(SEGMENT.name):
        raise UserError(
            f"--restore-spaces: needs a model that finds words. Received: {model}. "
            f"Train one with: {PROGRAM} finetune --task segment"
        )
    function = serving_function(load_folder(folder))
    problem.restore_spaces = lambda texts: [
        row["segmented"].decode("utf-8") for row in function.answers_by_length(texts)
    ]
