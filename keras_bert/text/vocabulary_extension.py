"""Giving a vocabulary the words of a new domain, all other ids unchanged."""

from keras_bert.errors import UserError
from keras_bert.text.tokenizer_json import CONTINUATION
from keras_bert.text.vocabulary import MAX_PIECE_BYTES, Vocabulary, is_unused
from keras_bert.text.word_counts import count_words

SMALLEST_COUNT = 2  # As in learning: a word that occurs once says nothing about the domain.


def extend_vocabulary(vocabulary, texts, lower_case=True, source="vocabulary"):
    """Puts the most frequent new words of `texts` into the `[unusedN]` slots, in the order of their rows.

    A new word is one that has no piece of its own: the vocabulary splits it or knows it as [UNK] alone. So a BERT
    goes on training in another domain with its own weights, and a slot's row of the embedding becomes the new word's
    (google-research/bert, "Pre-training tips").

    Args:
        vocabulary: a `Vocabulary`.
        texts: iterable of str, read once and streamed; memory grows with the number of different words.
        lower_case: as for the tokenizer that the vocabulary belongs to.
        source: names the vocabulary in messages.

    Returns:
        (the new `Vocabulary`, `[(word, count)]` in the order of the rows). Words may be fewer than slots.

    Raises:
        UserError: the vocabulary has no slot, or the texts no word that is new and occurs twice.
    """
    slots = [row for row, token in enumerate(vocabulary.tokens) if is_unused(token)]
    if not slots:
        raise UserError(
            f"{source}: needs [unusedN] rows to put words in. Received: {len(vocabulary)} pieces, none of them unused. "
            "Give Google's own vocab.txt, or learn one with --unused N."
        )
    counts = count_words(texts, lower_case)
    new = [
        (word, count)
        for word, count in counts.items()
        if count >= SMALLEST_COUNT and word not in vocabulary.ids and len(word.encode("utf-8")) <= MAX_PIECE_BYTES
    ]
    if not new:
        raise UserError(
            f"The texts: need words that are new to {source} and occur twice. Received: {len(counts):,} different "
            "words, none of them new. Give more text, or use the vocabulary as it is."
        )
    added = sorted(new, key=lambda item: (-item[1], item[0]))[: len(slots)]
    tokens = list(vocabulary.tokens)
    for row, (word, _) in zip(slots, added):
        tokens[row] = word
    return Vocabulary(tokens, source), added


def cut_before(vocabulary, tokenizer):
    """How an older vocabulary cuts the words that a new one has in other rows, or for the first time.

    Args:
        vocabulary: the new `Vocabulary`.
        tokenizer: the `WordPieceTokenizer` of the older one.

    Returns: `{row of the new: list of rows of the older}`, without rows that hold what they held, and without pieces
        that the older knows nothing of.
    """
    old = tokenizer.vocabulary
    rows = [row for row, token in enumerate(vocabulary.tokens) if row >= len(old) or token != old.tokens[row]]
    cut = {row: [old.ids[vocabulary.tokens[row]]] for row in rows if vocabulary.tokens[row] in old.ids}
    new = [row for row in rows if row not in cut and not vocabulary.tokens[row].startswith(CONTINUATION)]
    if new:
        pieces = tokenizer([vocabulary.tokens[row] for row in new]).to_list()
        cut |= {row: ids for row, ids in zip(new, pieces) if ids and old.unk_id not in ids}
    return cut
