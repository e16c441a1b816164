"""Linear probes: what a linear classifier reads from each layer of a frozen encoder, at the words of tagged text."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from keras_bert.core.errors import UserError
from keras_bert.data.windows import batches_by_length
from keras_bert.inference.text_embedding import BATCH_TOKENS
from keras_bert.inference.texts import encoder_inputs
from keras_bert.inputs.windows import with_unknown
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.tasks.tagging.label_schemes import Entities, UnknownLabel, read_entities
from keras_bert.tasks.tagging.scores import entity_scores
from keras_bert.tasks.tagging.tagged_words import TaggedWords
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.text.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class TaggedPieces:
    """The words of tagged sentences, cut into pieces.

    Attributes:
        rows: int32 [pieces] each: sentences, or parts of long ones, without special tokens.
        row, start, length: int64 [words], the row of each word, and the first and the number of its pieces there.
        tags: [words], the tag of each word; None for one without.
        is_known: bool [words], whether no piece is [UNK].
    """

    rows: Sequence[np.ndarray]
    row: np.ndarray
    start: np.ndarray
    length: np.ndarray
    tags: Sequence[str | None]
    is_known: np.ndarray

    def of_tag(self, tag: str) -> np.ndarray:
        """int64 [n], the words with this tag and without [UNK]."""
        return np.flatnonzero(self.is_known & (np.array(self.tags, object) == tag))

    def all_tags(self) -> list[str]:
        """The tags, the most frequent first."""
        found, counts = np.unique([tag for tag in self.tags if tag is not None], return_counts=True)
        return [str(tag) for tag in found[np.argsort(-counts, kind="stable")]]


def tagged_pieces(tokenizer: Tokenizer, tagged: TaggedWords, max_length: int) -> TaggedPieces:
    """Cuts words into pieces and sentences into rows of whole words.

    Args:
        max_length: the most tokens of a row, [CLS] and [SEP] included; a longer word is truncated.

    Raises:
        UserError: no word has a tag.
    """
    if tagged.labels is None:
        raise UserError(f"{tagged.origin}: needs words with tags. Received: {len(tagged.words):,} words without.")
    capacity = max_length - 2
    pieces = with_unknown(tokenizer.tokenize(tagged.words), tokenizer.vocabulary)[:, :capacity]
    ids, splits = pieces.values.numpy(), pieces.row_splits.numpy()
    length = np.diff(splits)
    starts_sentence = np.zeros(len(length), bool)
    starts_sentence[tagged.starts[:-1]] = True
    row, start, used, number = np.zeros(len(length), np.int64), np.zeros(len(length), np.int64), 0, -1
    for word, size in enumerate(length.tolist()):
        if starts_sentence[word] or used + size > capacity:
            number, used = number + 1, 0
        row[word], start[word] = number, used
        used += size
    firsts = np.flatnonzero(np.diff(row, prepend=-1))
    bounds = np.append(splits[firsts], splits[-1])
    rows = [ids[begin:end] for begin, end in zip(bounds[:-1], bounds[1:])]
    has_unknown = tf.reduce_any(pieces == tokenizer.vocabulary.unk_id, axis=1).numpy()
    return TaggedPieces(rows, row, start, length, tagged.labels, ~has_unknown)


def hidden_states(encoder: BertEncoder, layer: int | None = None) -> Callable[[dict[str, tf.Tensor]], tf.Tensor]:
    """A function (the encoder's inputs, each [batch, seq] int32) -> states, with the weights at the time of the call.

    Args:
        layer: the layer of the states, float32 [batch, seq, hidden], 0 for the embeddings; None for all of them,
            [layers + 1, batch, seq, hidden].
    """
    spec = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[dict.fromkeys(("input_word_ids", "input_mask", "input_type_ids"), spec)])
    def states(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        found = encoder(inputs)["hidden_states"]
        return tf.stack(found) if layer is None else found[layer]

    return states


_ITERATIONS = 100  # Of the solver; scores no longer change then.


class LayerStates:
    """The states of an encoder for the words of tagged sentences, each word by its first piece.

    Args:
        encoder: the encoder, whose weights may change between calls.
    """

    def __init__(self, encoder: BertEncoder, vocabulary: Vocabulary):
        self._vocabulary = vocabulary
        self._states = hidden_states(encoder)

    def __call__(self, pieces: TaggedPieces) -> np.ndarray:
        """float32 [layers + 1, words, hidden]: the embeddings, then each layer."""
        found: np.ndarray | None = None
        lengths = np.array([len(row) for row in pieces.rows]) + 2
        for batch in batches_by_length(lengths, BATCH_TOKENS):
            states = self._states(encoder_inputs([pieces.rows[row] for row in batch], self._vocabulary)).numpy()
            if found is None:
                found = np.zeros((len(states), len(pieces.row), states.shape[-1]), np.float32)
            for number, row in enumerate(batch):
                words = np.flatnonzero(pieces.row == row)
                found[:, words] = states[:, number, 1 + pieces.start[words]]
        assert found is not None, "There is a row."
        return found


def probe(
    train: tuple[np.ndarray, TaggedPieces], dev: tuple[np.ndarray, TaggedPieces], marks_entities: bool
) -> list[float]:
    """Scores of a multinomial logistic regression on each layer, in per cent: [layers + 1].

    Args:
        train, dev: float32 [layers + 1, words, hidden] and the words' labels; words without one are left out.
        marks_entities: whether the labels mark entities; if so, the score is their F1, otherwise the accuracy.

    Raises:
        UserError: all words to train on have the same label, or the labels do not mark entities as they should.
    """
    (train_states, train_words), (dev_states, dev_words) = train, dev
    labelled = np.array([tag is not None for tag in train_words.tags])
    labels = [tag for tag in train_words.tags if tag is not None]
    if len(set(labels)) < 2:
        received = f"{labels[0]} alone" if labels else "none"
        raise UserError(f"probe_words: needs words of two labels, to tell apart. Received: {received}. Raise it.")
    scores = []
    for seen, unseen in zip(train_states, dev_states):
        scaler = StandardScaler().fit(seen[labelled])
        classifier = LogisticRegression(max_iter=_ITERATIONS, tol=1e-3)
        with warnings.catch_warnings():
            # The solver stops after these iterations on purpose.
            warnings.simplefilter("ignore", ConvergenceWarning)
            classifier.fit(scaler.transform(seen[labelled]), labels)
        answers = classifier.predict(scaler.transform(unseen))
        scores.append(_score(dev_words, [str(answer) for answer in answers], marks_entities))
    return scores


def _score(words: TaggedPieces, answers: list[str], marks_entities: bool) -> float:
    if not marks_entities:
        right = [answer == tag for answer, tag in zip(answers, words.tags) if tag is not None]
        return 100.0 * float(np.mean(right))
    starts = [*np.flatnonzero(np.diff(words.row, prepend=-1)), len(words.row)]
    gold, found = (_entities(labels, starts) for labels in ([tag or "O" for tag in words.tags], answers))
    return 100.0 * entity_scores(gold, found)["f1"]


def _entities(labels: list[str], starts: list[int]) -> Entities:
    try:
        return read_entities(labels, starts)
    except UnknownLabel as problem:
        raise UserError(
            f"The labels of the entities: need O, or B- or I- and a type. Received: {labels[problem.word]!r}."
        ) from None
