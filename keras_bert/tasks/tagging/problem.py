"""Tagging as a task for fine-tuning: named entities, parts of speech, or any other label per word."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import sklearn.metrics

from keras_bert.config.finetuning import BIO, DOCUMENT, TaskDataConfig
from keras_bert.config.reading import TRUNCATE, WINDOWS
from keras_bert.core.errors import UserError
from keras_bert.inference.texts import require_numbers
from keras_bert.layers.crf import FORBIDDEN
from keras_bert.tasks.problem import Layout, Problem, all_the_same
from keras_bert.tasks.tagging.crf_decoding import decode_words
from keras_bert.tasks.tagging.data import TaggedFiles, noisy_words
from keras_bert.tasks.tagging.head import CrfTaggingConfig, FeatureTaggingConfig, TokenClassificationConfig
from keras_bert.tasks.tagging.label_schemes import (
    Entities,
    UnknownLabel,
    forbidden_transitions,
    learned_scheme,
    read_entities,
    scheme_labels,
)
from keras_bert.tasks.tagging.network import CrfObjective, TaggingObjective
from keras_bert.tasks.tagging.scores import entity_counts, entity_scores, label_scores
from keras_bert.tasks.tagging.tagged_words import TaggedWords
from keras_bert.tasks.tagging.task import TaggingTask
from keras_bert.tasks.tagging.word_rows import WordRows, lay_out_words
from keras_bert.tasks.task import MOST_CONFUSED

_SHOWN = 10  # Labels in a message.


@dataclasses.dataclass(frozen=True)
class TaggedWindow:
    """Some sentences of a split.

    Attributes:
        tagged: their words.
        scheme: the scheme to write their entities in; None if the labels mark none.
        target_labels: the labels to learn, one per word, with entities in the head's scheme; None if hidden or
            not read.
    """

    tagged: TaggedWords
    scheme: str | None = None
    target_labels: Sequence[str | None] | None = None

    def __len__(self) -> int:
        return self.tagged.sentences

    def labelled(self, labels: list[str]) -> Iterator[str]:
        """The window's lines with these labels, one per word."""
        if self.scheme:
            labels = read_entities(labels, self.tagged.starts).labels(self.scheme)
        assert self.tagged.reader is not None
        return self.tagged.reader.labelled(self.tagged, labels)


@dataclasses.dataclass(kw_only=True)
class TaggedLayout(Layout):
    """Sentences or documents as rows, with the tokens' `labels`: -1 for a token without one.

    For a CRF the rows also have `sentence_starts` and `sentence_ends`: whether the first or last word of a sentence or
    document is labelled in the row.

    Attributes:
        words: where the words are in the rows.
        starts: int64 [sentences or documents + 1], where each starts in the words.
    """

    words: WordRows
    starts: np.ndarray


class TaggingProblem(Problem):
    """A `TaggingTask`. The answers are the labels, one per word.

    The label of a word is predicted at its first piece (paper, section 5.3), and sentences too long for a row are split
    into windows; see `lay_out_words`. A CRF decodes the labels of a sentence together, across its windows. If
    `config.data.rows` is "document", both treat a whole document as a sentence. The source is `{split: path}`; each
    file is read when first needed. Of `config.data`, `word` and `label` choose columns, `scheme` is the files' scheme,
    and entities are learned in `learned_scheme`, whatever the files' scheme. `config.head` may ask for a CRF; with
    `config.features`, the tagger works on frozen features.

    Attributes:
        head: the `TokenClassificationConfig`; for frozen features the `FeatureTaggingConfig`, for a CRF the
            `CrfTaggingConfig`.

    Raises:
        UserError: a file is missing or cannot be read, or labels that must mark entities do not, naming the line.
    """

    by_token = ("logits",)
    answers_ending = ".txt"
    long = (TRUNCATE, WINDOWS)  # Always in windows; truncating is the default.
    takes_noise = True

    task: TaggingTask
    head: TokenClassificationConfig

    def _open(self) -> None:
        data, head = self._config.data, self.head
        if len(data.texts) > 1:
            raise UserError(
                f"data.texts (--text): needs a single column, that of the words. Received: {', '.join(data.texts)}."
            )
        self._columns = self._reader_options(data)
        self._by_document = data.rows == DOCUMENT
        unnamed: dict[str | None, str] = {}
        if head and head.is_unnamed:  # Files may write the labels' numbers.
            unnamed.update((str(number), label) for number, label in enumerate(head.labels))
        self._files = TaggedFiles(self.task, self._source, data.scheme, self._columns, unnamed)
        self.notes = self._files.notes
        self._marks_entities = self._labels_mark_entities(head)

    @property
    def objective(self) -> TaggingObjective:
        return CrfObjective() if self.head.has_crf else TaggingObjective()

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("f1", "precision", "recall", "accuracy") if self._marks_entities else ("accuracy",)

    @property
    def splits(self) -> tuple[str, ...]:
        return self._files.splits

    def task_record(self) -> dict[str, Any]:
        scheme = self._config.data.scheme
        return {
            "task": self.task.name,
            "max_length": self._config.input.max_length,
            **({"scheme": scheme} if scheme else {}),
            **({"rows": DOCUMENT} if self._by_document else {}),
            **self._columns,
        }

    def origin(self, split: str) -> str:
        return self._words(split).origin

    def windows(self, split: str, labelled: bool = False) -> Iterator[TaggedWindow]:
        """Like `Problem.windows`, but a split with labels is one window: their scheme is inferred from all of them."""
        if labelled:
            yield TaggedWindow(self._words(split), target_labels=self._learned_labels(split))
        else:
            found = self._files.windows(split, self._marks_entities, self._by_document)
            yield from itertools.starmap(TaggedWindow, found)

    def lay_out(self, windows: Iterable[TaggedWindow]) -> TaggedLayout:
        """Lays out a single window as rows. Raises `UserError` if documents are needed, but the file marks none."""
        [window] = windows
        tagged, max_length = window.tagged, self._config.input.max_length
        starts = self._starts(tagged)
        words = lay_out_words(tagged.words, starts, self._tokenizer, max_length)
        longest = max_length - self._tokenizer.vocabulary.row_pattern.special_tokens(1)
        ids, unknown = self._label_ids(window)
        words.rows.token_extra["labels"] = words.token_values(ids)
        if self.head.has_crf:
            words.rows.extra |= words.sentence_flags(starts)
        warnings = [
            f"{tagged.origin}: {len(found):,} words {what} (the first: line {tagged.lines[found[0]]})."
            for found, what in (
                (words.vanished, "have no piece and are read as [UNK]"),
                (words.cut, f"are longer than {longest} pieces and are truncated"),
            )
            if len(found)
        ]
        return TaggedLayout(
            rows=words.rows, origin=tagged.origin, warnings=[*unknown, *warnings], words=words, starts=starts
        )

    def answers_of(self, layout: TaggedLayout, outputs: Mapping[str, Any]) -> list[str]:
        lengths = [len(row) for row in outputs["logits"]]
        if lengths != layout.rows.lengths.tolist():
            raise ValueError(f"outputs: needs a row of logits for each of {len(layout.rows)} rows, without padding.")
        logits = np.concatenate(outputs["logits"])[layout.words.places]
        require_numbers(logits, "words")
        if self.head.has_crf:
            best, _ = decode_words(logits, layout.starts, outputs["chain"])
        else:
            best = logits.argmax(axis=1)
        return [self.head.labels[index] for index in best]

    def shared_outputs(self, model: keras.Model) -> dict[str, Any]:
        """`chain`, the CRF's scores of starts, transitions and ends."""
        return {"chain": model.crf.scores()} if self.head.has_crf else {}

    def averaged(self, split: str, outputs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Like `Problem.averaged`; for a CRF, the best allowed labels are decoded from the mean of the marginals."""
        if not self.head.has_crf:
            return super().averaged(split, outputs)
        layout, places = self.layout(split), self.layout(split).words.places
        marginals = [
            decode_words(np.concatenate(one["logits"])[places], layout.starts, one["chain"])[1] for one in outputs
        ]
        tokens = np.zeros((len(layout.rows.ids), self.head.num_labels), np.float32)
        tokens[places] = np.log(np.maximum(np.mean(marginals, axis=0), np.finfo(np.float32).tiny))
        head: Any = self.head  # A `CrfTaggingConfig`.
        penalty = np.where(forbidden_transitions(head.labels, head.learned_scheme), FORBIDDEN, 0.0)
        chain = (penalty[-1, :-1], penalty[:-1, :-1], penalty[:-1, -1])
        return {"logits": np.split(tokens, layout.rows.starts[1:-1]), "chain": chain}

    def lines(self, split: str, window: TaggedWindow, answers: list[str]) -> Iterator[str]:
        """The file's own lines, with the predicted label of every word, in the file's own scheme."""
        return window.labelled(answers)

    def require_labels(self, split: str) -> None:
        tagged, head = self._words(split), self.head.labels
        if tagged.labels is None:
            raise UserError(
                f"{tagged.origin}: needs labels to evaluate on. Received: none. Choose another split, or use `predict`."
            )
        if not self._marks_entities and not set(tagged.labels) & set(head):
            raise UserError(
                f"{tagged.origin}: needs labels that the model has, such as {', '.join(head[:_SHOWN])}. Received: "
                f"{', '.join(_distinct(tagged.labels)[:_SHOWN])}. Give the same column as in training."
            )

    def evaluate(self, split: str, answers: list[str]) -> dict[str, float]:
        """The scores of a split with labels; see `entity_scores` and `label_scores`."""
        self.require_labels(split)
        if self._marks_entities:
            return entity_scores(self._entities(split), self._predicted_entities(split, answers))
        pairs = [pair for pair in zip(self._words(split).labels or (), answers) if pair[0] is not None]
        return label_scores(*map(list, zip(*pairs)))

    def by_example(self, split: str, answers: list[str]) -> dict[str, np.ndarray]:
        """The F1 of entities, or the accuracy of labels, by sentence."""
        tagged = self._words(split)
        if self._marks_entities:
            found = self._predicted_entities(split, answers)
            return {"f1": entity_counts(self._entities(split), found, tagged.starts)}
        pairs = zip(tagged.labels or (), answers)
        words = np.array([(label == answer, label is not None) for label, answer in pairs], "float64")
        return {"accuracy": np.add.reduceat(words, tagged.starts[:-1])}

    def _predicted_entities(self, split: str, answers: list[str]) -> Entities:
        """The entities of the answers, in the scheme of the labels, in which `predict` writes them for conlleval."""
        scheme = self._files.scheme(split) if self.noise is None else BIO
        return read_entities(answers, self._words(split).starts).in_scheme(scheme)

    def baseline(self, split: str) -> dict[str, float]:
        """The scores of each word's most frequent label in training and, for new words, of the most frequent label.

        Ties go to the label seen first.
        """
        training, counts = self._words("train"), collections.defaultdict[str, collections.Counter](collections.Counter)
        labels = self._learned_labels("train") or []
        for word, label in zip(training.words, labels):
            if label is not None:
                counts[word][label] += 1
        most_frequent = {word: by_label.most_common(1)[0][0] for word, by_label in counts.items()}
        [(overall, _)] = collections.Counter(label for label in labels if label is not None).most_common(1)
        return self.evaluate(split, [most_frequent.get(word, overall) for word in self._words(split).words])

    def remarks(self, split: str, answers: list[str]) -> Iterator[str]:
        return all_the_same(answers, lambda label: f"Every word of {split} is predicted as {label!r}")

    def confusion(self, split: str, answers: list[str]) -> np.ndarray | None:
        """How often each label (row) was predicted as each (column); None for entities, and for too many labels."""
        if self._marks_entities or self.head.num_labels > MOST_CONFUSED:
            return None
        known = set(self.head.labels)
        pairs = [pair for pair in zip(self._words(split).labels or [], answers) if pair[0] in known]
        return sklearn.metrics.confusion_matrix(*map(list, zip(*pairs)), labels=list(self.head.labels))

    def _reader_options(self, data: TaskDataConfig) -> dict[str, Any]:
        """The columns that the recipe chooses, as arguments of `task.reader`."""
        if not self.task.in_columns:  # A model trained on columns keeps its own.
            return {}
        word = data.texts[0] if data.word is None and data.texts != TaskDataConfig().texts else data.word
        chosen = {name: value for name, value in (("word", word), ("label", data.label)) if value is not None}
        # A recipe gives numbers as text; a model's folder may have them as numbers.
        return {
            name: int(value) if str(value).removeprefix("-").isdecimal() else value for name, value in chosen.items()
        }

    def _learned_labels(self, split: str) -> Sequence[str | None] | None:
        """The labels of a split, with entities in the head's scheme; None if it has no labels."""
        labels = self._words(split).labels
        if labels is None or not self._marks_entities:
            return labels
        return self._entities(split).labels(learned_scheme(self.head.labels))

    def _labels_mark_entities(self, head: TokenClassificationConfig | None) -> bool:
        """Whether the labels mark entities, according to the task, or else to the trained model or training file."""
        expected = self.task.marks_entities
        if expected and head and not _mark_entities(head.labels):
            raise UserError(
                f"{self.task.name}: needs a model whose labels are O, and B-, I-, E- or S- and a type. "
                f"Received: {', '.join(head.labels[:_SHOWN])}. Give a model that was trained on entities."
            )
        if expected is not None:
            return expected
        return _mark_entities(head.labels if head else self._words("train").labels or ["O"])

    def _new_head(self) -> TokenClassificationConfig:
        tagged = self._words("train")
        if tagged.labels is None:
            raise UserError(f"{tagged.origin}: needs labels to train on. Received: only words.")
        if self._marks_entities:
            types = self._entities("train").types
            if not types:
                raise UserError(f"{tagged.origin}: needs entities to train on. Received: no label but O.")
            labels = scheme_labels(types, self._config.data.learned_scheme)
        else:
            labels = tuple(_distinct(tagged.labels))
            if len(labels) < 2:
                raise UserError(
                    f"{tagged.origin}: needs two labels or more to train on. Received: {labels[0]!r} for every word. "
                    "Give training data with every label."
                )
            data = self._config.data
            if data.scheme or data.learned_scheme != BIO:
                setting = "scheme" if data.scheme else "learned_scheme"
                raise UserError(
                    f"data.{setting}: needs labels that mark entities, O and B-, I-, E- or S- and a type. Received: "
                    f"{', '.join(labels[:_SHOWN])} in {tagged.origin}. Leave it out."
                )
        features, settings = self._config.features, self._config.head
        if features.kind:
            return FeatureTaggingConfig(labels, features.kind, features.lstm_size)
        if settings.crf:
            scheme = self._config.data.learned_scheme if self._marks_entities else None
            return CrfTaggingConfig(labels, scheme, bilstm_size=settings.bilstm_size)
        return TokenClassificationConfig(labels, bilstm_size=settings.bilstm_size)

    def _starts(self, tagged: TaggedWords) -> np.ndarray:
        """Where each sentence, or each document if these are the rows, starts in the words: int64 [n + 1]."""
        if not self._by_document:
            return tagged.starts
        if tagged.documents is None:
            raise UserError(
                f"{tagged.origin}: needs documents, because data.rows is {DOCUMENT}: lines -DOCSTART- in columns, "
                "# newdoc in CoNLL-U. Received: none. Mark them, even a single one, or train with data.rows=sentence; "
                "a row of a table may then be a whole document."
            )
        return tagged.starts[tagged.documents]

    def _words(self, split: str) -> TaggedWords:
        """The words of a split, with any noise; noisy words have entities in BIO."""
        if self.noise is None:
            return self._files.words(split)
        return self._once(("words", split), lambda: self._noisy_words(split))

    def _noisy_words(self, split: str) -> TaggedWords:
        assert self.noise is not None
        tagged = self._files.words(split)
        has_entities = self._marks_entities and tagged.labels is not None
        return noisy_words(tagged, self._files.entities(split) if has_entities else None, self.noise)

    def _entities(self, split: str) -> Entities:
        """The entities that the labels of a split mark."""
        if self.noise is None:
            return self._files.entities(split)
        tagged = self._words(split)
        labels: list[Any] = tagged.labels or []
        return self._once(("entities", split), lambda: read_entities(labels, tagged.starts))

    def _label_ids(self, window: TaggedWindow) -> tuple[np.ndarray, list[str]]:
        """(int [words], each word's label id, -1 for none or one that the head lacks; a warning about the latter)."""
        tagged, labels = window.tagged, window.target_labels
        if labels is None:
            return np.full(len(tagged.words), -1), []
        ids: dict[str | None, int] = {None: -1, **{label: index for index, label in enumerate(self.head.labels)}}
        unknown = [word for word, label in enumerate(labels) if label not in ids]
        warnings = [
            f"{tagged.origin}: {len(unknown):,} words have labels that the model does not have (the first: line "
            f"{tagged.lines[word]}, {labels[word]}); they are scored as errors and left out of the loss."
            for word in unknown[:1]
        ]
        return np.array([ids.get(label, -1) for label in labels]), warnings


def _distinct(labels: Iterable[str | None]) -> list[str]:
    """The different labels, sorted."""
    return sorted({label for label in labels if label is not None})


def _mark_entities(labels: Iterable[Any]) -> bool:
    """Whether the labels mark entities: all of them are valid, and not all are O."""
    labels = list(labels)
    try:
        return bool(read_entities(labels, [0, len(labels)]).types)
    except UnknownLabel:
        return False
