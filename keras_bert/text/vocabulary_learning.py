"""Learning a WordPiece vocabulary from text."""

from collections import Counter

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import CharDelimiterSplit
from tokenizers.trainers import WordPieceTrainer

from keras_bert.errors import UserError
from keras_bert.text.tokenizer import MAX_CHARACTERS_PER_WORD
from keras_bert.text.vocabulary import CONTINUATION, MAX_PIECE_BYTES, SPECIAL_TOKENS, UNK, Vocabulary, unused_token
from keras_bert.text.word_counts import count_words

# The most frequent characters that make up this share of all text are pieces; a word with any other is [UNK].
# Without a limit the stray characters of a large corpus fill thousands of rows.
CHARACTER_COVERAGE = 0.9999
SMALLEST_COUNT = 2  # A piece that occurs once says nothing about the language.


def learn_vocabulary(texts, size, lower_case=True, unused=0):
    """The `Vocabulary` of `size` pieces that WordPiece training finds in `texts`; the same for the same texts.

    It has fewer pieces where the texts hold no more that occur twice: compare its `len` with `size`.

    Args:
        texts: iterable of str, read once and streamed; memory grows with the number of different words.
        size: pieces, the special tokens, the slots and the characters included.
        lower_case: as for the tokenizer that will use the vocabulary.
        unused: how many slots, `[unused0]` and so on, stand between the special tokens and the pieces, for words that
            `extend_vocabulary` puts there later.

    Raises:
        UserError: the texts hold no words, or `size` has no room for their characters.
    """
    counts = _taught(count_words(texts, lower_case))
    if not counts:
        raise UserError("texts: needs words to learn a vocabulary from. Received: none. Give files with text in them.")
    characters = _frequent_characters(counts)
    counts = {word: count for word, count in counts.items() if characters.issuperset(word)}
    continuations = {CONTINUATION + character for word in counts for character in word[1:]}
    # Handed over as special tokens, so that the trainer does not number them in the order of a hash map: it breaks ties
    # by these numbers, and the same text would give other pieces in another run (huggingface/tokenizers issue 1794).
    first_pieces = [*SPECIAL_TOKENS, *map(unused_token, range(unused)), *sorted(characters), *sorted(continuations)]
    if size < len(first_pieces):
        raise UserError(
            f"The vocabulary's size: needs at least {len(first_pieces)}, for special tokens, slots and the characters "
            "of these texts. "
            f"Received: {size}. Give a larger size."
        )
    tokenizer = Tokenizer(WordPiece(unk_token=UNK))
    tokenizer.pre_tokenizer = CharDelimiterSplit(" ")
    trainer = WordPieceTrainer(
        vocab_size=size, min_frequency=SMALLEST_COUNT, special_tokens=first_pieces, show_progress=False
    )
    tokenizer.train_from_iterator(_repeat(counts), trainer)
    ids = tokenizer.get_vocab()
    return Vocabulary(sorted(ids, key=ids.get), source="learned vocabulary")


def _taught(counts):
    """The counts of words that a piece can be part of, cut to the length of a piece."""
    taught = Counter()
    for word, count in counts.items():
        # Longer words are [UNK] as a whole.
        if len(word) <= MAX_CHARACTERS_PER_WORD:
            taught[word.encode("utf-8")[:MAX_PIECE_BYTES].decode("utf-8", "ignore")] += count
    return taught


def _frequent_characters(counts):
    characters = Counter()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
    remaining = CHARACTER_COVERAGE * characters.total()
    kept = set()
    for character, count in sorted(characters.items(), key=lambda item: (-item[1], item[0])):
        if remaining <= 0:
            break
        kept.add(character)
        remaining -= count
    return kept


def _repeat(counts):
    """Each word as often as it was counted, which is all that the trainer takes, in strings of bounded length."""
    for word, count in counts.items():
        for start in range(0, count, 10_000):
            yield f"{word} " * min(10_000, count - start)
