"""Where words are in a BERT: their neighbours by three kinds of vectors, and the parts of the embeddings' sum."""

import itertools
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from keras_bert.core.drawing import PAGE, new_figure, png, tidy
from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath
from keras_bert.core.terminal_bar import terminal_bar
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.corpus_vectors import FEWEST_OCCURRENCES, corpus_vectors
from keras_bert.inference.loading import LoadedModel, load
from keras_bert.inference.texts import encoder_inputs
from keras_bert.models.kind import kind_of_config
from keras_bert.studies.probes import hidden_states
from keras_bert.studies.study import Findings, StudyFolder, rows_of_markdown
from keras_bert.text.vocabulary import Vocabulary

_LENGTH = 128  # Tokens of a row.
_ROWS = 32  # Of a batch.
_CORPUS_WIDTH = 128  # Columns of the corpus vectors.
_PARTS = ("word", "position", "segment")
_PAIRS = 2000  # Of random words, for the mean similarity.


def geometry(
    study: StudyFolder,
    model: StrPath,
    words: Sequence[str],
    entries: Sequence[str],
    tokens: int,
    neighbours: int,
    layer: int | None,
) -> Findings:
    """Finds the neighbours of words, and breaks down the sum of the embeddings if the model has positions.

    Args:
        words: words that are one piece each.
        entries: text, as `Corpus` takes it.
        tokens: the most tokens of it to read.
        neighbours: the number of neighbours to list.
        layer: the layer of the contextual vectors, from 1; None for the last.

    Raises:
        UserError: a word is not one piece of letters or too rare in the text, no other is frequent enough, or there is
            no such layer.
    """
    loaded = load(model)
    vocabulary, layers = loaded.tokenizer.vocabulary, loaded.config.num_blocks
    layer = layers if layer is None else layer
    if not 1 <= layer <= layers:
        raise UserError(f"--layer: needs one from 1 to {layers}. Received: {layer}.")
    wanted = [piece_of(loaded, word) for word in words]
    rows = text_rows(loaded, entries, tokens)
    counts, of_corpus = corpus_vectors(rows, len(vocabulary), min(_CORPUS_WIDTH, len(vocabulary)))
    candidates = whole_words(vocabulary, counts)
    for word, piece in zip(words, wanted):
        if piece not in candidates:
            raise UserError(
                f"--word {word}: needs {FEWEST_OCCURRENCES} occurrences in the text. Received: {counts[piece]}. "
                "Give more text or another word."
            )
    if len(candidates) < 2:
        raise UserError(
            f"{', '.join(entries)}: needs two words or more with {FEWEST_OCCURRENCES} occurrences, to compare. "
            "Received: one. Give more text."
        )
    contextual = contextual_vectors(loaded, rows, candidates, layer)
    static = np.array(loaded.encoder.embeddings.word_embeddings)[candidates]
    kinds = {
        "word embeddings": static,
        f"contextual, mean of layer {layer}": contextual,
        "corpus vectors": of_corpus[candidates],
    }
    lines = [*neighbour_table(vocabulary, candidates, wanted, kinds, neighbours), "", *spread(kinds)]
    pictures = {}
    if kind_of_config(loaded.config).has_positions:
        found = embedding_shares(loaded, rows)
        lines += ["", "## The sum of the embeddings", "", *share_table(found)]
        pictures["embeddings"] = shares_picture(found)
    return Findings("Where words are", lines, pictures)


def piece_of(loaded: LoadedModel, word: str) -> int:
    """The piece of a word. Raises `UserError` if it has several or is not of letters."""
    # Byte-level BPE has other pieces for the word after a blank, which is where words are.
    (pieces,) = loaded.tokenizer.tokenize([f" {word}"]).to_list()
    vocabulary = loaded.tokenizer.vocabulary
    if len(pieces) != 1 or pieces[0] == vocabulary.unk_id:
        shown = " ".join(vocabulary.tokens[piece] for piece in pieces)
        raise UserError(f"--word {word}: needs a word that is one piece of the vocabulary. Received: {shown!r}.")
    if not is_word(vocabulary, pieces[0]):
        raise UserError(
            f"--word {word}: needs a word of letters alone, like those it is compared with. "
            f"Received: {word_of(vocabulary, pieces[0])!r}."
        )
    return pieces[0]


def text_rows(loaded: LoadedModel, entries: Sequence[str], tokens: int) -> list[np.ndarray]:
    """The beginning of a text as rows of pieces, int32 each, without special tokens; no row has two documents."""
    length = min(_LENGTH, loaded.config.max_position_embeddings) - 2
    rows, count = [], 0
    for document in Corpus(entries).documents("Read"):
        (ids,) = loaded.tokenizer.tokenize([document]).to_list()
        ids = ids[: tokens - count]
        count += len(ids)
        rows += [np.array(ids[begin : begin + length], np.int32) for begin in range(0, len(ids), length)]
        if count >= tokens:
            break
    return rows


def whole_words(vocabulary: Vocabulary, counts: np.ndarray) -> np.ndarray:
    """int64 [n], the pieces that are words by themselves and occur often enough to have a vector."""
    frequent = np.flatnonzero(counts >= FEWEST_OCCURRENCES).tolist()
    return np.array([piece for piece in frequent if is_word(vocabulary, piece)], np.int64)


def is_word(vocabulary: Vocabulary, piece: int) -> bool:
    """Whether a piece is a word by itself, of letters and their marks: no ending, number, punctuation or [SEP]."""
    word = word_of(vocabulary, piece)
    is_of_letters = all(unicodedata.category(character)[0] in "LM" for character in word)
    return bool(word) and is_of_letters and not vocabulary.is_continuation[piece]


def word_of(vocabulary: Vocabulary, piece: int) -> str:
    """A piece as people write it, without the mark or the blank that SentencePiece and BPE have for a word's start."""
    return vocabulary.appended("", vocabulary.tokens[piece]).lstrip()


def contextual_vectors(
    loaded: LoadedModel, rows: Sequence[np.ndarray], candidates: np.ndarray, layer: int
) -> np.ndarray:
    """float32 [n, hidden]: the mean state of each of the pieces `candidates` over all its occurrences in the rows."""
    vocabulary, states_of = loaded.tokenizer.vocabulary, hidden_states(loaded.encoder, layer)
    index = np.full(len(vocabulary), -1)
    index[candidates] = np.arange(len(candidates))
    sums: np.ndarray | None = None
    counts = np.zeros(len(candidates))
    for begin in terminal_bar("Encoded", "batches", over=range(0, len(rows), _ROWS), leave=False):
        inputs = encoder_inputs(rows[begin : begin + _ROWS], vocabulary)
        states = states_of(inputs).numpy()
        if sums is None:
            sums = np.zeros((len(candidates), states.shape[-1]))
        place = index[inputs["input_word_ids"]]
        np.add.at(sums, place[place >= 0], states[place >= 0])
        np.add.at(counts, place[place >= 0], 1)
    assert sums is not None, "The corpus has a document."
    return (sums / np.maximum(counts, 1)[:, None]).astype("float32")


def neighbour_table(
    vocabulary: Vocabulary, candidates: np.ndarray, wanted: Sequence[int], kinds: Mapping[str, np.ndarray], most: int
) -> Iterator[str]:
    """Lines of Markdown: the nearest words by the cosine of each kind of vectors, [n, width] for the `candidates`."""
    rows = []
    for piece in wanted:
        place = int(np.flatnonzero(candidates == piece)[0])
        cells = []
        for vectors in kinds.values():
            cosines = unit(vectors) @ unit(vectors[place])
            order = [number for number in np.argsort(-cosines, kind="stable") if number != place][:most]
            cells.append(
                ", ".join(f"{word_of(vocabulary, candidates[number])} {cosines[number]:.2f}" for number in order)
            )
        rows.append([word_of(vocabulary, piece), *cells])
    return rows_of_markdown(["", *kinds], rows)


def spread(kinds: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Lines of Markdown: the mean cosine of random pairs of words, 0 if the vectors' directions are uniform."""
    random = np.random.default_rng(0)
    cells = []
    for vectors in kinds.values():
        first, second = random.integers(0, len(vectors), (2, _PAIRS))
        is_pair = first != second
        cosines = (unit(vectors[first[is_pair]]) * unit(vectors[second[is_pair]])).sum(axis=-1)
        cells.append(f"{cosines.mean():.2f}")
    return rows_of_markdown(["", *kinds], [["mean cosine of two random words", *cells]])


def unit(vectors: np.ndarray) -> np.ndarray:
    """The vectors along the last axis, divided by their length; zero vectors stay zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def embedding_shares(loaded: LoadedModel, rows: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The shares of the word's, the position's and the segment's embedding in their sum.

    The share of a part p in a sum e is p·e / e·e, so that the shares of one token add up to 1; a part that points
    against the sum has a negative one.

    Returns: `{part: float64 [positions]}`, means over the rows; positions include [CLS].
    """
    embeddings = loaded.encoder.embeddings
    tables = [np.array(getattr(embeddings, f"{part}_embeddings")) for part in ("word", "position", "token_type")]
    longest = max(len(row) for row in rows) + 2
    sums = np.zeros((len(_PARTS), longest))
    counts = np.zeros(longest)
    for begin in range(0, len(rows), _ROWS):
        inputs = encoder_inputs(rows[begin : begin + _ROWS], loaded.tokenizer.vocabulary)
        ids, is_there = inputs["input_word_ids"], inputs["input_mask"] > 0
        width = ids.shape[1]
        positions = tables[1][embeddings.first_position :][:width]
        parts = [tables[0][ids], np.broadcast_to(positions, (*ids.shape, positions.shape[1]))]
        parts.append(tables[2][inputs["input_type_ids"]])
        whole = sum(parts)
        squared = (whole * whole).sum(axis=-1)
        for number, part in enumerate(parts):
            sums[number, :width] += np.where(is_there, (part * whole).sum(axis=-1) / squared, 0.0).sum(axis=0)
        counts[:width] += is_there.sum(axis=0)
    return dict(zip(_PARTS, sums / counts))


def share_table(shares: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Lines of Markdown: the shares by ranges of positions."""
    length = len(shares["word"])
    bounds = [0, 1, *(bound for bound in (16, 64) if bound < length), length]
    rows = []
    for begin, end in itertools.pairwise(bounds):
        name = "[CLS]" if end == 1 else f"{begin} to {end - 1}"
        rows.append([name, *(f"{100 * shares[part][begin:end].mean():.1f}" for part in _PARTS)])
    return rows_of_markdown(["position", *(f"{part}, per cent" for part in _PARTS)], rows)


def shares_picture(shares: Mapping[str, np.ndarray]) -> bytes:
    """PNG of the shares over the positions."""
    figure = new_figure(PAGE, 4)
    axes = figure.subplots()
    for part in _PARTS:
        axes.plot(100 * shares[part], label=part)
    axes.set(xlabel="position", ylabel="per cent of the sum", ylim=(None, 105))
    tidy(axes)
    axes.legend(frameon=False)
    return png(figure)
