"""Tagging as a problem for the loop of fine-tuning: named entities, parts of speech, any label a word."""

import collections
import contextlib
import dataclasses
import functools
import itertools

import numpy as np
import sklearn.metrics

from keras_bert.config.heads import FeatureTaggingConfig, TokenClassificationConfig
from keras_bert.errors import UserError
from keras_bert.export.tagging import WORDS
from keras_bert.inference.finite_outputs import require_numbers
from keras_bert.models.tagging_objective import TaggingObjective
from keras_bert.tasks.answer_files import text_output
from keras_bert.tasks.problem import Problem
from keras_bert.tasks.tagging.label_schemes import UnknownLabel, bio_labels, read_entities
from keras_bert.tasks.tagging.scores import entity_scores, label_scores
from keras_bert.tasks.tagging.tagged_files import TaggedFiles
from keras_bert.tasks.tagging.tagged_words import TaggedWords
from keras_bert.tasks.tagging.word_rows import lay_out_words
from keras_bert.tasks.task import MOST_CONFUSED

_SHOWN = 10  # Labels, in a message.


@dataclasses.dataclass(frozen=True)
class TaggedWindow:
    """Some sentences of a split: `TaggedWords` with their lines, and the scheme to write entities in, None for none."""

    tagged: TaggedWords
    scheme: str | None

    def __len__(self):
        return self.tagged.sentences

    def labelled(self, labels):
        """Their lines with these labels, one a word."""
        if self.scheme:
            labels = read_entities(labels, self.tagged.starts).labels(self.scheme)
        return self.tagged.reader.labelled(self.tagged, labels)


class TaggingProblem(Problem):
    """The splits of a task of tagging, laid out for a model and judged.

    The first piece of a word bears its label (paper, section 5.3), and a sentence too long for a row goes by windows;
    see `lay_out_words`. Entities are learned as BIO, whatever the scheme of their files.

    Args:
        task: a `TaggingTask`.
        files: `{split: path}`; each is read when it is asked for.
        tokenizer: the model's `WordPieceTokenizer`.
        max_length: the most tokens of a row, special tokens included.
        head: the `TokenClassificationConfig` or `FeatureTaggingConfig` of a model that is trained; where None, the
            labels are those of the split "train".
        scheme: of `tasks.tagging.label_schemes.SCHEMES`, the files' own; each file's labels tell it where None.
        features: a `FeaturesConfig` with a kind for a tagger over frozen features.
        options: what `task.reader` takes beside the path: which columns.

    Attributes:
        head: the `TokenClassificationConfig`, or, over frozen features, the `FeatureTaggingConfig`.
        main_metric: `f1` of entities, else `accuracy`.

    Raises:
        UserError: there is no such file, it cannot be read, or labels that must mark entities do not; with the line.
    """

    by_token = ("logits",)
    answers_ending = ".txt"

    def __init__(self, task, files, tokenizer, max_length, head=None, scheme=None, features=None, **options):
        self._task, self._options, self._features, self._scheme = task, options, features, scheme
        self._tokenizer, self._max_length = tokenizer, max_length
        self._files = TaggedFiles(task, files, scheme, options)
        self._words, self._entities = self._files.words, self._files.entities
        self._layout = functools.cache(self._lay_out)  # Of each split once.
        self.notes = self._files.notes
        self.objective = TaggingObjective()
        self._marks_entities = self._judge_labels(head)
        self.head = head or self._found_labels()

    @property
    def main_metric(self):
        return "f1" if self._marks_entities else "accuracy"

    @property
    def metric_names(self):
        return ("f1", "precision", "recall", "accuracy") if self._marks_entities else ("accuracy",)

    @property
    def splits(self):
        return self._files.splits

    def described(self):
        scheme = {"scheme": self._scheme} if self._scheme else {}
        return {"task": self._task.name, "max_length": self._max_length, **scheme, **self._options}

    def origin(self, split):
        return self._words(split).origin

    def rows(self, split):
        """The `TokenRows` of a split, with `labels` of its tokens: -1 where a token bears none."""
        return self._layout(split).rows

    def answers(self, split, outputs):
        """List of str: the label of each word of a split.

        Args:
            split: its name.
            outputs: `{"logits": list of arrays [tokens of the row, labels]}`, the rows in the order of `rows(split)`.

        Raises:
            UserError: an output is no finite number.
        """
        layout = self._layout(split)
        lengths = [len(row) for row in outputs["logits"]]
        if lengths != layout.rows.lengths.tolist():
            raise ValueError(f"outputs: needs a row of logits for each of {len(layout.rows)} rows, without padding.")
        logits = np.concatenate(outputs["logits"])[layout.places]
        require_numbers(logits, "words")
        return [self.head.labels[index] for index in logits.argmax(axis=1)]

    def windows(self, split):
        """`TaggedWindow`s."""
        return itertools.starmap(TaggedWindow, self._files.windows(split, self._marks_entities))

    def window_answers(self, window, function):
        """`answers` to the words of a window."""
        tagged = window.tagged
        sentences = [tagged.words[start:end] for start, end in itertools.pairwise(tagged.starts)]
        served = function.answers_by_length(sentences, signature=WORDS)
        return [
            label.decode("utf-8")
            for sentence, row in zip(sentences, served)
            for label in row["labels"][: len(sentence)]
        ]

    @contextlib.contextmanager
    def writing(self, split, output):
        """The file again with the predicted label of every word, in the file's own scheme."""
        with text_output(output) as write:
            yield lambda window, answers: write(window.labelled(answers))

    def served_answers(self, split, function):
        return [label for window in self.windows(split) for label in self.window_answers(window, function)]

    def evaluate(self, split, answers):
        """`{metric: float}` of a split with labels; see `entity_scores` and `label_scores`.

        Raises:
            UserError: the split has no labels of its own.
        """
        return self._scores(split, answers)

    def baseline(self, split):
        """The scores, as `evaluate`'s, of each word's most frequent label in training, and of all words' for a new one.

        Where several are as frequent it is the one met first.
        """
        training, counts = self._words("train"), collections.defaultdict(collections.Counter)
        labels = self._entities("train").labels("bio") if self._marks_entities else training.labels
        for word, label in zip(training.words, labels):
            if label is not None:
                counts[word][label] += 1
        most_frequent = {word: of_word.most_common(1)[0][0] for word, of_word in counts.items()}
        [(of_all, _)] = collections.Counter(label for label in labels if label is not None).most_common(1)
        return self._scores(split, [most_frequent.get(word, of_all) for word in self._words(split).words])

    def remarks(self, split, answers):
        if len(answers) > 1 and len(set(answers)) == 1:
            yield (
                f"Every word of {split} is predicted as {answers[0]!r}: the training failed. "
                "Try another seed, a lower learning rate or more epochs."
            )

    def confusion(self, split, answers):
        """[labels, labels] int: the count of each label (row) predicted as each (column); None for entities, and for
        very many labels."""
        if self._marks_entities or self.head.num_labels > MOST_CONFUSED:
            return None
        pairs = [pair for pair in zip(self._words(split).labels, answers) if pair[0] in self.head.labels]
        return sklearn.metrics.confusion_matrix(*map(list, zip(*pairs)), labels=list(self.head.labels))

    def _scores(self, split, predicted):
        tagged = self._words(split)
        if tagged.labels is None:
            raise UserError(f"{tagged.origin}: needs labels to evaluate on. Received: none. Write predictions instead.")
        if self._marks_entities:
            return entity_scores(self._entities(split), read_entities(predicted, tagged.starts))
        if not set(tagged.labels) & set(self.head.labels):
            found = ", ".join(sorted({*tagged.labels} - {None})[:_SHOWN])
            raise UserError(
                f"{tagged.origin}: needs labels that the model has, such as {', '.join(self.head.labels[:_SHOWN])}. "
                f"Received: {found}. Give the same column as in training."
            )
        pairs = [pair for pair in zip(tagged.labels, predicted) if pair[0] is not None]
        return label_scores(*map(list, zip(*pairs)))

    def _judge_labels(self, head):
        """Whether the labels mark entities; of a trained model its own tell it, else those of the training file."""
        expected = self._task.marks_entities
        if expected and head and not _mark_entities(head.labels):
            raise UserError(
                f"{self._task.name}: needs a model whose labels are O, and B-, I-, E- or S- and a type. "
                f"Received: {', '.join(head.labels[:_SHOWN])}. Give a model that was trained on entities."
            )
        if expected is not None:
            return expected
        return _mark_entities(head.labels if head else self._words("train").labels or ["O"])

    def _found_labels(self):
        tagged = self._words("train")
        if tagged.labels is None:
            raise UserError(f"{tagged.origin}: needs labels to train on. Received: words alone.")
        if not self._marks_entities:
            return self._head_of(tuple(sorted({*tagged.labels} - {None})))
        types = self._entities("train").types
        if not types:
            raise UserError(f"{tagged.origin}: needs entities to train on. Received: no label but O.")
        return self._head_of(bio_labels(types))

    def _head_of(self, labels):
        if self._features is None:
            return TokenClassificationConfig(labels)
        return FeatureTaggingConfig(labels, self._features.kind, self._features.lstm_size)

    def _lay_out(self, split):
        """The `WordRows` of a split, the labels in place."""
        tagged = self._words(split)
        layout = lay_out_words(tagged.words, tagged.starts, self._tokenizer, self._max_length)
        layout.rows.token_extra["labels"] = layout.token_values(self._ids(split))
        for words, what in (
            (layout.vanished, "words of which no piece is left stand as [UNK]"),
            (layout.cut, f"words longer than {self._max_length - 2} pieces are cut"),
        ):
            if len(words):
                self.notes.append(f"{tagged.origin}: {len(words):,} {what} (the first: line {tagged.lines[words[0]]}).")
        return layout

    def _ids(self, split):
        """int [words]: each word's label, -1 for none and for one that the head has not, which is said."""
        tagged = self._words(split)
        if tagged.labels is None:
            return np.full(len(tagged.words), -1)
        labels = self._entities(split).labels("bio") if self._marks_entities else tagged.labels
        ids = {None: -1, **{label: index for index, label in enumerate(self.head.labels)}}
        unknown = [word for word, label in enumerate(labels) if label not in ids]
        if unknown:
            self.notes.append(
                f"{tagged.origin}: {len(unknown):,} words have labels that the model has not (the first: line "
                f"{tagged.lines[unknown[0]]}, {labels[unknown[0]]}); they count as errors, and not in the loss."
            )
        return np.array([ids.get(label, -1) for label in labels])


def _mark_entities(labels):
    """Whether there are labels of entities, and none but such and O."""
    try:
        return bool(read_entities(list(labels), [0, len(labels)]).types)
    except UnknownLabel:
        return False
