"""Documents as flat arrays of token ids, as they are tokenized and stored in shards."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass
class TokenizedDocuments:
    """Any number of documents, one after the other.

    Attributes:
        tokens: integer `[tokens]`, the ids of all sentences, without special tokens.
        sentence_lengths: int32 `[sentences]`, each at least 1.
        document_lengths: int32 `[documents]`, the sentences of each document; 0 if it has no tokens.
        empty_sentences: int32 `[documents]`, how many sentences without tokens were dropped from each document.
        continuations: uint8 `[tokens]`, 1 for a token that continues the word of the token before it; or None.
        phrases: uint8 `[tokens]`, the marks of `text.phrases`; or None.
    """

    tokens: np.ndarray
    sentence_lengths: np.ndarray
    document_lengths: np.ndarray
    empty_sentences: np.ndarray
    continuations: np.ndarray | None = None
    phrases: np.ndarray | None = None

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.document_lengths)

    def token_counts(self) -> np.ndarray:
        """Tokens of each document: int64 `[documents]`."""
        return np.diff(offsets(self.sentence_lengths)[offsets(self.document_lengths)])

    @classmethod
    def joined(cls, parts: Sequence["TokenizedDocuments"]) -> "TokenizedDocuments":
        """All documents of at least one part."""
        continuations = [part.continuations for part in parts if part.continuations is not None]
        phrases = [part.phrases for part in parts if part.phrases is not None]
        return cls(
            np.concatenate([part.tokens for part in parts]),
            np.concatenate([part.sentence_lengths for part in parts]),
            np.concatenate([part.document_lengths for part in parts]),
            np.concatenate([part.empty_sentences for part in parts]),
            np.concatenate(continuations) if continuations else None,
            np.concatenate(phrases) if phrases else None,
        )

    def part(self, first: int, last: int) -> "TokenizedDocuments":
        """The documents from `first` up to but not including `last`."""
        sentences = offsets(self.document_lengths)[[first, last]]
        tokens = offsets(self.sentence_lengths)[sentences]
        return TokenizedDocuments(
            self.tokens[slice(*tokens)],
            self.sentence_lengths[slice(*sentences)],
            self.document_lengths[first:last],
            self.empty_sentences[first:last],
            None if self.continuations is None else self.continuations[slice(*tokens)],
            None if self.phrases is None else self.phrases[slice(*tokens)],
        )


def offsets(lengths: ArrayLike) -> np.ndarray:
    """The start of each of consecutive stretches with these lengths, and the end of the last: int64 `[n + 1]`."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
