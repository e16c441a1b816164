"""Learns a WordPiece vocabulary from text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import CharDelimiterSplit
from tokenizers.trainers import WordPieceTrainer

from keras_bert.core.errors import UserError
from keras_bert.core.terminal_bar import working
from keras_bert.text.basic_tokenizer import BasicTokenizer
from keras_bert.text.sentences import utf8_batches
from keras_bert.text.vocabulary import CONTINUATION, MAX_PIECE_BYTES, SPECIAL_TOKENS, UNK, Vocabulary, unused_token
from keras_bert.text.wordpiece import MAX_CHARACTERS_PER_WORD


def count_words(texts: Iterable[str], lower_case: bool) -> Counter[str]:
    """Counts the words in `texts`, streamed once; memory grows with the number of different words."""
    normalize = BasicTokenizer(lower_case).normalize
    counts: Counter[str] = Counter()
    for batch in utf8_batches(texts):
        for text in normalize(batch).numpy():
            counts.update(text.decode("utf-8").split(" "))
    del counts[""]  # From empty texts.
    return counts


# The most frequent characters that cover this share of the text become pieces; a word with any other is [UNK].
# Without a limit the rare characters of a large corpus fill thousands of rows.
CHARACTER_COVERAGE = 0.9999
# The trainer reads every word as often as it was counted; a thousand times more text teaches no other pieces.
MOST_WORDS = 1_000_000_000
SMALLEST_COUNT = 2  # A piece that occurs once says nothing about the language.


def learn_vocabulary(texts: Iterable[str], size: int, lower_case: bool = True, unused: int = 0) -> Vocabulary:
    """Learns a vocabulary of `size` pieces from `texts` by WordPiece training; deterministic.

    It has fewer pieces if the texts have no more that occur twice: compare its `len` with `size`.

    Args:
        texts: streamed once; memory grows with the number of different words. Counts of more than `MOST_WORDS` words
            are scaled down.
        size: the number of pieces, including special tokens, slots and single characters.
        lower_case: as for the tokenizer that will use the vocabulary.
        unused: the number of slots, `[unused0]` and so on, between the special tokens and the pieces, which
            `extend_vocabulary` can fill later.

    Raises:
        UserError: the texts have no words, or `size` is too small for their characters.
    """
    return learn_from_counts(count_words(texts, lower_case), size, unused)


def learn_from_counts(counts: Mapping[str, int], size: int, unused: int = 0) -> Vocabulary:
    """`learn_vocabulary` of texts with these counts of words, as from `count_words`."""
    divisor = count_divisor(sum(counts.values()))
    counts = _training_counts({word: count // divisor for word, count in counts.items() if count >= divisor})
    if not counts:
        raise UserError("texts: needs words to learn a vocabulary from. Received: none. Give files with text in them.")
    characters = _frequent_characters(counts)
    covered = {word: count for word, count in counts.items() if characters.issuperset(word)}
    continuations = {CONTINUATION + character for word in covered for character in word[1:]}
    # Passed as special tokens, because the trainer would number characters in the order of a hash map. It breaks ties
    # by these numbers, so another run on the same text would learn other pieces (huggingface/tokenizers issue 1794).
    first_pieces = [*SPECIAL_TOKENS, *map(unused_token, range(unused)), *sorted(characters), *sorted(continuations)]
    if size < len(first_pieces):
        raise UserError(
            f"The vocabulary's size: needs at least {len(first_pieces)}, for special tokens, slots and the characters "
            f"of these texts. Received: {size}. Give a larger size."
        )
    tokenizer = Tokenizer(WordPiece(unk_token=UNK))
    tokenizer.pre_tokenizer = CharDelimiterSplit(" ")
    trainer = WordPieceTrainer(
        vocab_size=size, min_frequency=SMALLEST_COUNT, special_tokens=first_pieces, show_progress=False
    )
    with working("Learning the vocabulary"):
        tokenizer.train_from_iterator(_repeat(covered), trainer)
    ids = tokenizer.get_vocab()
    return Vocabulary(sorted(ids, key=ids.__getitem__), source="learned vocabulary")


def count_divisor(total: int) -> int:
    """What counts of words are divided by, if there are `total` words: words that are rarer teach nothing."""
    return -(-total // MOST_WORDS) or 1


def _training_counts(counts: Mapping[str, int]) -> Counter[str]:
    """The counts of the words that can be split into pieces, truncated to the length of a piece."""
    kept: Counter[str] = Counter()
    for word, count in counts.items():
        # Longer words are a single [UNK].
        if len(word) <= MAX_CHARACTERS_PER_WORD:
            kept[word.encode("utf-8")[:MAX_PIECE_BYTES].decode("utf-8", "ignore")] += count
    return kept


def _frequent_characters(counts: Counter[str]) -> set[str]:
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
    remaining = CHARACTER_COVERAGE * characters.total()
    kept: set[str] = set()
    for character, count in sorted(characters.items(), key=lambda item: (-item[1], item[0])):
        if remaining <= 0:
            break
        kept.add(character)
        remaining -= count
    return kept


def _repeat(counts: Mapping[str, int]) -> Iterator[str]:
    """Each word as often as it was counted, in strings of bounded length: the trainer takes texts, not counts."""
    for word, count in counts.items():
        for start in range(0, count, 10_000):
            yield f"{word} " * min(10_000, count - start)
