"""Adds the words of a new domain to a vocabulary without changing other ids."""

from collections.abc import Iterable, Mapping

from keras_bert.core.errors import UserError
from keras_bert.text.tokenizer_json import CONTINUATION
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.text.vocabulary import MAX_PIECE_BYTES, Vocabulary, is_unused
from keras_bert.text.vocabulary_learning import count_words

SMALLEST_COUNT = 2  # As in learning: a word that occurs once says nothing about the domain.


def extend_vocabulary(
    vocabulary: Vocabulary, texts: Iterable[str], lower_case: bool = True, source: str = "vocabulary"
) -> tuple[Vocabulary, list[tuple[str, int]]]:
    """Puts the most frequent new words of `texts` into the `[unusedN]` slots, in the order of their rows.

    A word is new if it has no piece of its own: the vocabulary splits it, or maps it to [UNK]. A BERT can then continue
    training in another domain with its own weights; the embedding row of a slot becomes that of the new word
    (google-research/bert, "Pre-training tips").

    Args:
        vocabulary: the vocabulary to extend.
        texts: streamed once; memory grows with the number of different words.
        lower_case: as for the tokenizer of the vocabulary.
        source: names the vocabulary in messages.

    Returns: (the new vocabulary, `[(word, count)]` in the order of the rows), with at most as many words as slots.

    Raises:
        UserError: the vocabulary has no slots, or the texts have no new word that occurs twice.
    """
    free_rows(vocabulary, source)  # Told before the texts are read.
    return extend_from_counts(vocabulary, count_words(texts, lower_case), source)


def extend_from_counts(
    vocabulary: Vocabulary, counts: Mapping[str, int], source: str = "vocabulary"
) -> tuple[Vocabulary, list[tuple[str, int]]]:
    """`extend_vocabulary` by texts with these counts of words, as from `count_words`."""
    slots = free_rows(vocabulary, source)
    new = [
        (word, count)
        for word, count in counts.items()
        if count >= SMALLEST_COUNT and word not in vocabulary.ids and len(word.encode("utf-8")) <= MAX_PIECE_BYTES
    ]
    if not new:
        raise UserError(
            f"The texts: need words that are new to {source} and occur twice. Received: {len(counts):,} different "
            "words, none of them new. Give more text, or use the vocabulary unchanged."
        )
    added = sorted(new, key=lambda item: (-item[1], item[0]))[: len(slots)]
    tokens = vocabulary.tokens[: vocabulary.num_pieces]
    for row, (word, _) in zip(slots, added):
        tokens[row] = word
    return Vocabulary(tokens, source, vocabulary.added), added


def free_rows(vocabulary: Vocabulary, source: str) -> list[int]:
    """The rows of the `[unusedN]` slots. Raises `UserError` if there are none."""
    taken = {token.id for token in vocabulary.added}
    slots = [row for row, token in enumerate(vocabulary.tokens) if is_unused(token) and row not in taken]
    if not slots:
        raise UserError(
            f"{source}: needs [unusedN] rows for the new words. Received: {len(vocabulary)} pieces, none unused. "
            "Give Google's own vocab.txt, or learn one with --unused N."
        )
    return slots


def cut_before(vocabulary: Vocabulary, tokenizer: Tokenizer) -> dict[int, list[int]]:
    """How an older vocabulary splits the tokens that a new one has in other rows, or for the first time.

    Args:
        vocabulary: the new vocabulary.
        tokenizer: the tokenizer of the older one.

    Returns: `{row in the new vocabulary: rows in the older one}`, without unchanged rows and without tokens that the
        older vocabulary cannot represent.
    """
    old = tokenizer.vocabulary
    rows = [row for row, token in enumerate(vocabulary.tokens) if row >= len(old) or token != old.tokens[row]]
    cut = {row: [old.ids[vocabulary.tokens[row]]] for row in rows if vocabulary.tokens[row] in old.ids}
    new = [row for row in rows if row not in cut and not vocabulary.tokens[row].startswith(CONTINUATION)]
    if new:
        pieces = tokenizer([vocabulary.tokens[row] for row in new]).to_list()
        cut |= {row: ids for row, ids in zip(new, pieces) if ids and old.unk_id not in ids}
    return cut
