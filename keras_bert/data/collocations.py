"""Collocations of a text, n-grams of words that mostly occur together, to be masked as units (Levine et al. 2021).

The first line of `collocations.txt` in a prepared folder holds the vocabulary's fingerprint and the SHA-256 of the
other lines. Each of these is a collocation: its PMI, its count in the sampled text, and its pieces.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keras_bert.core.errors import UserError
from keras_bert.core.files import content, join
from keras_bert.core.whole_files import write_file
from keras_bert.data.corpus.held_out import TRAIN
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.text.vocabulary import Vocabulary

COLLOCATIONS_FILE = "collocations.txt"
PREPARE_AGAIN = "Run `prepare` again with --collocations 40000."
MOST_WORDS = 5
# As in the authors' lists (github.com/AI21Labs/pmi-masking): each length's share, and "over 10 occurrences".
_SHARES = {2: 0.5, 3: 0.25, 4: 0.125, 5: 0.125}
FEWEST_OCCURRENCES = 11
# Counting needs about 100 bytes a token, so longer texts are sampled.
MOST_TOKENS = 20_000_000


class Collocation(NamedTuple):
    """An n-gram of words.

    Attributes:
        pmi: its PMI_n in nats (Levine et al., equation 3).
        occurrences: how often it occurs.
        ids: the ids of its pieces.
    """

    pmi: float
    occurrences: int
    ids: tuple[int, ...]


class Words(NamedTuple):
    """A text, word by word.

    Attributes:
        ids: its tokens, int32 [tokens].
        starts: where each word starts in `ids`, then the number of tokens: int64 [words + 1].
        begins: whether a word is the first of a sentence: bool [words].
        is_known: false for a word with an unknown piece, which may stand for any text: bool [words].
    """

    ids: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    begins: npt.NDArray[np.bool_]
    is_known: npt.NDArray[np.bool_]


def write_collocations(folder: str, vocabulary: Vocabulary, most: int) -> None:
    """Learns the collocations of a prepared folder's training shards and writes them into the folder."""
    found = collocations(_words(ShardSet.open(join(folder, TRAIN), vocabulary, verify=False), vocabulary), most)
    lines = (
        f"{pmi:.3f}\t{count}\t{' '.join(vocabulary.tokens[index] for index in ids)}\n" for pmi, count, ids in found
    )
    text = "".join(lines)
    write_file(join(folder, COLLOCATIONS_FILE), f"{_header(vocabulary, text)}\n{text}")


def read_collocations(folder: str, vocabulary: Vocabulary, remedy: str = PREPARE_AGAIN) -> list[tuple[int, ...]]:
    """The ids of each collocation's pieces, from a prepared folder.

    Args:
        remedy: advice for messages if the file cannot be used.

    Raises:
        UserError: the file is missing, damaged or made with another vocabulary.
    """
    path = join(folder, COLLOCATIONS_FILE)
    try:
        header, _, text = content(path).decode().partition("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}). {remedy}") from None
    needed = _header(vocabulary, text)
    if header != needed:
        raise UserError(
            f"{path}: damaged, or of another vocabulary: needs the first line {needed!r}. Received: {header!r}. "
            f"{remedy}"
        )
    ids = {token: index for index, token in enumerate(vocabulary.tokens)}
    pieces = (line.split("\t")[-1].split(" ") for line in text.split("\n")[:-1])
    return [tuple(ids[piece] for piece in of_one) for of_one in pieces]


def _header(vocabulary: Vocabulary, text: str) -> str:
    """The first line of a `collocations.txt` whose other lines are `text`."""
    return f"vocabulary {vocabulary.fingerprint}, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"


def collocations(words: Words, most: int) -> list[Collocation]:
    """The n-grams of two to five words within a sentence with the highest PMI_n: by length, the highest first.

    PMI_n(w) is the least of log p(w) − Σ log p(s) over all divisions of w into shorter n-grams s, so that an n-gram
    counts only for what its parts do not explain. It grows with n, so each length has its own share of the result
    (`_SHARES`). N-grams are counted by ascending length, and only those whose first n − 1 words, and last word, are
    frequent.

    Args:
        most: the most n-grams of all lengths together; fewer if not enough are frequent with a positive PMI_n.
    """
    total = len(words.begins)
    # names[n - 1][i] is the number of the n-gram that begins at word i; -1 if it is rare or crosses a sentence's end.
    names: list[npt.NDArray[np.int32]] = []
    # best[n - 1]: for each n-gram, the highest Σ log p over its divisions, including the undivided n-gram.
    best: list[npt.NDArray[np.float64]] = []
    found: list[Collocation] = []
    keys: npt.NDArray[Any]
    for size in range(1, MOST_WORDS + 1):
        if size == 1:
            places = np.flatnonzero(words.is_known)
            keys = hashes(words.ids, words.starts, token_codes(int(words.ids.max(initial=0)) + 1))[places]
        else:
            shorter, last = names[-1][: max(total - size + 1, 0)], names[0][size - 1 :]
            places = np.flatnonzero((shorter >= 0) & (last >= 0) & ~words.begins[size - 1 :])
            keys = shorter[places].astype(np.int64) * len(best[0]) + last[places]
        _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        is_frequent = counts >= FEWEST_OCCURRENCES
        names.append(np.full(total, -1, np.int32))
        names[-1][places] = np.where(is_frequent, np.cumsum(is_frequent) - 1, -1)[inverse]
        first, counts = places[first[is_frequent]], counts[is_frequent]
        undivided = np.log(counts / max(total, 1))
        if size == 1:
            best.append(undivided)
            continue

        def of_part(place: npt.NDArray[np.integer], length: int) -> npt.NDArray[np.float64]:
            return best[length - 1][names[length - 1][place]]

        sums = [of_part(first, left) + of_part(first + left, size - left) for left in range(1, size)]
        divided = np.max(sums, axis=0)
        best.append(np.maximum(undivided, divided))
        pmi = undivided - divided
        order = np.argsort(-pmi, kind="stable")[: round(most * _SHARES[size])]
        for index in order[pmi[order] > 0]:
            start, end = words.starts[first[index]], words.starts[first[index] + size]
            found.append(Collocation(float(pmi[index]), int(counts[index]), tuple(words.ids[start:end].tolist())))
    return found


# Odd, and so invertible modulo 2**64.
BASE = 0x9E3779B97F4A7C15


def token_codes(vocab_size: int) -> npt.NDArray[np.uint64]:
    """A random number for each token, the same in every process: uint64 [vocab]."""
    return np.random.default_rng(0).integers(2**64, size=vocab_size, dtype=np.uint64)


def powers(base: int, count: int) -> npt.NDArray[np.uint64]:
    """base**0, base**1, ... modulo 2**64: uint64 [count]."""
    return np.cumprod(np.array([1] + [base] * (count - 1), np.uint64), dtype=np.uint64)[:count]


def hashes(
    ids: npt.NDArray[np.integer], starts: npt.NDArray[np.integer], codes: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """A hash of each sequence of ids, Σ code · BASE**place modulo 2**64: uint64 [sequences].

    A million different sequences contain a collision with a probability below 1e-7.

    Args:
        ids: all sequences, one after the other: [ids].
        starts: where each sequence starts, then the number of ids: [sequences + 1]. No sequence may be empty.
        codes: see `token_codes`.
    """
    lengths = np.diff(starts)
    places = np.arange(len(ids)) - np.repeat(starts[:-1], lengths)
    factors = powers(BASE, int(lengths.max(initial=1)))
    return np.add.reduceat(codes[ids] * factors[places], starts[:-1]) if len(lengths) else np.zeros(0, np.uint64)


def flat(sequences: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Concatenate sequences: (ids [ids], where each starts and the last ends [sequences + 1])."""
    starts = np.cumsum([0, *map(len, sequences)])
    return np.fromiter((index for sequence in sequences for index in sequence), np.int64, starts[-1]), starts


def _words(shards: ShardSet, vocabulary: Vocabulary) -> Words:
    """The words of at most `MOST_TOKENS` tokens, sampled from all over the shards."""
    from keras_bert.text.characters import continues_word  # Imports TensorFlow, which not all importers need.

    ids: list[npt.NDArray[np.int32]] = []
    heads: list[npt.NDArray[np.bool_]] = []
    begins: list[npt.NDArray[np.bool_]] = []
    for name, count in shards.sample(MOST_TOKENS):
        tokens, sentences, _ = shards.read(name)
        marks = shards.continuations(name)
        continues = continues_word(vocabulary, tokens.astype(np.int32)).numpy() if marks is None else marks > 0
        starts_sentence = np.zeros(len(tokens), bool)
        starts_sentence[sentences[:-1]] = True
        ids.append(tokens[:count].astype(np.int32))
        heads.append((starts_sentence | ~continues)[:count])
        begins.append(starts_sentence[:count])
    starts = np.flatnonzero(np.concatenate([*heads, [True]]))
    together = np.concatenate([*ids, np.zeros(0, np.int32)])
    is_known = np.ones(len(starts) - 1, bool)
    is_known[np.searchsorted(starts, np.flatnonzero(together == vocabulary.unk_id), "right") - 1] = False
    return Words(together, starts, np.concatenate([*begins, np.zeros(0, bool)])[starts[:-1]], is_known)
