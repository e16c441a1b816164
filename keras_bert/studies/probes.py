"""Linear probes: what a linear classifier reads from each layer of a frozen encoder."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from keras_bert.core.errors import UserError
from keras_bert.inference.text_embedding import BATCH_TOKENS, batches_by_length
from keras_bert.inference.texts import encoder_inputs
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.studies.tagged_pieces import TaggedPieces, hidden_states
from keras_bert.tasks.tagging.label_schemes import UnknownLabel, read_entities
from keras_bert.tasks.tagging.scores import entity_scores
from keras_bert.text.vocabulary import Vocabulary

_ITERATIONS = 100  # Of the solver; scores no longer change then.


class LayerStates:
    """The states of an encoder for the words of tagged sentences, each word by its first piece.

    Args:
        encoder: the encoder, whose weights may change between calls.
        vocabulary: its vocabulary.
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
        marks_entities: whether the labels mark entities, whose F1 is then the score; otherwise the accuracy.
    """
    (train_states, train_words), (dev_states, dev_words) = train, dev
    scores = []
    for seen, unseen in zip(train_states, dev_states):
        labelled = np.array([tag is not None for tag in train_words.tags])
        scaler = StandardScaler().fit(seen[labelled])
        labels = [tag for tag in train_words.tags if tag is not None]
        classifier = LogisticRegression(max_iter=_ITERATIONS, tol=1e-3)
        with warnings.catch_warnings():
            # That the solver ends after so many iterations is meant.
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
    try:
        gold, found = (read_entities(labels, starts) for labels in ([tag or "O" for tag in words.tags], answers))
    except UnknownLabel as problem:
        raise UserError(
            f"The labels of the entities: need O, or B- or I- and a type. Received: {words.tags[problem.word]!r}."
        ) from None
    return 100.0 * entity_scores(gold, found)["f1"]
