"""Documents as flat arrays of token ids: what tokenising gives and shards hold."""

from dataclasses import dataclass

import numpy as np


@dataclass
class TokenizedDocuments:
    """Any number of documents, one after the other.

    Attributes:
        tokens: ids of all sentences, no special tokens: integer `[tokens]`.
        sentence_lengths: int32 `[sentences]`, each at least 1.
        document_lengths: sentences of each document: int32 `[documents]`; 0 for one of which no token was left.
        empty_sentences: how many sentences without a token each document lost: int32 `[documents]`.
        continuations: uint8 `[tokens]`, 1 where a token continues the word that the one before it began; or None.
    """

    tokens: np.ndarray
    sentence_lengths: np.ndarray
    document_lengths: np.ndarray
    empty_sentences: np.ndarray
    continuations: np.ndarray | None = None

    def __len__(self):
        return len(self.document_lengths)

    def token_counts(self):
        """Tokens of each document: int64 `[documents]`."""
        return np.diff(offsets(self.sentence_lengths)[offsets(self.document_lengths)])

    def part(self, first, last):
        """The documents from `first` to before `last`."""
        sentences = offsets(self.document_lengths)[[first, last]]
        tokens = offsets(self.sentence_lengths)[sentences]
        return TokenizedDocuments(
            self.tokens[slice(*tokens)],
            self.sentence_lengths[slice(*sentences)],
            self.document_lengths[first:last],
            self.empty_sentences[first:last],
            None if self.continuations is None else self.continuations[slice(*tokens)],
        )


def offsets(lengths):
    """Where each of consecutive stretches begins, and where the last ends: int64 `[lengths + 1]`."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
