"""Learns vocabularies from text: WordPiece, new words for an existing one, SentencePiece, and byte-level BPE."""

import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf
import tokenizers
from tokenizers.models import BPE, WordPiece
from tokenizers.pre_tokenizers import CharDelimiterSplit
from tokenizers.trainers import BpeTrainer, WordPieceTrainer

from keras_bert.config.pretraining import BYTES, SENTENCEPIECE, T5, WORDPIECE, XLM_ROBERTA, XLNET
from keras_bert.core.errors import UserError
from keras_bert.core.settings import NotNegative, Positive, checked
from keras_bert.core.terminal_bar import working
from keras_bert.text import sentencepiece_vocabulary, standalone_byte_tokenizer, xlnet_vocabulary
from keras_bert.text.basic_tokenizer import BasicTokenizer
from keras_bert.text.byte_pieces import PartSplitter
from keras_bert.text.byte_vocabulary import ByteVocabulary
from keras_bert.text.fairseq_vocabulary import XLM_ROBERTA as XLM_ROBERTA_DICTIONARY
from keras_bert.text.fairseq_vocabulary import FairseqVocabulary
from keras_bert.text.sentencepiece import AlbertNormalizer
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary, require_sentencepiece
from keras_bert.text.sentences import divide_text, split_sentences, utf8_batches
from keras_bert.text.standalone_byte_tokenizer import byte_characters
from keras_bert.text.t5_vocabulary import FIRST_PIECES, SENTINELS, T5Vocabulary
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.text.vocabulary import (
    CLS,
    CONTINUATION,
    MASK,
    MAX_PIECE_BYTES,
    SEP,
    SPECIAL_TOKENS,
    UNK,
    Vocabulary,
    is_unused,
    unused_token,
)
from keras_bert.text.wordpiece import MAX_CHARACTERS_PER_WORD
from keras_bert.text.xlnet_vocabulary import XlnetVocabulary


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
# Without a limit, the rare characters of a large corpus would fill thousands of rows.
CHARACTER_COVERAGE = 0.9999
# The trainer reads every word as often as it was counted; a thousand times more text teaches no other pieces.
MOST_WORDS = 1_000_000_000
SMALLEST_COUNT = 2  # A piece that occurs once says nothing about the language, nor a word about a domain.


@checked
def learn_vocabulary(
    texts: Iterable[str], size: Positive[int], lower_case: bool = True, unused: NotNegative[int] = 0
) -> Vocabulary:
    """Learns a vocabulary of `size` pieces from `texts` by WordPiece training; deterministic.

    It is smaller if too few pieces occur twice in the texts: compare its `len` with `size`.

    Args:
        texts: streamed once; memory grows with the number of different words. Counts of more than `MOST_WORDS` words
            are scaled down.
        size: the number of pieces, including special tokens, slots and single characters.
        lower_case: as for the tokenizer that will use the vocabulary.
        unused: the number of slots (`[unused0]` and so on) between the special tokens and the pieces, for new words
            to fill later.

    Raises:
        UserError: the texts have no words, `size` is too small for their characters, or `texts` is a single text.
        ValueError: `size` or `unused` is out of range.

    Example:
        vocabulary = keras_bert.learn_vocabulary(["the cat sat", "the cats sat"] * 10, size=40)
        keras_bert.WordPieceTokenizer(vocabulary)(["cats"])
    """
    if isinstance(texts, str):  # Each of its characters would be a text.
        raise UserError(f"texts: needs texts, as in a list. Received: {texts[:40]!r}, a single one. Give a list.")
    return learn_from_counts(count_words(texts, lower_case), size, unused)


def learn_from_counts(counts: Mapping[str, int], size: int, unused: int = 0) -> Vocabulary:
    """`learn_vocabulary` for texts with these word counts, as from `count_words`."""
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
    ids = _trained(WordPiece(unk_token=UNK), WordPieceTrainer, size, first_pieces, covered).get_vocab()
    return Vocabulary(sorted(ids, key=ids.__getitem__), source="learned vocabulary")


def count_divisor(total: int) -> int:
    """The divisor of the counts if there are `total` words; words with lower counts teach nothing."""
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


def _trained(
    model: Any, trainer: Callable[..., Any], size: int, first_pieces: list[str], counts: Mapping[str, int]
) -> tokenizers.Tokenizer:
    """A tokenizer of `size` pieces, learned from words without spaces and how often each occurs."""
    size = min(size, len(first_pieces) + sum(map(len, counts)))  # The trainer allocates room for that many.
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = CharDelimiterSplit(" ")
    options = {"min_frequency": SMALLEST_COUNT, "special_tokens": first_pieces, "show_progress": False}
    with working("Learning the vocabulary"):
        tokenizer.train_from_iterator(_repeat(counts), trainer(vocab_size=size, **options))
    return tokenizer


def _repeat(counts: Mapping[str, int]) -> Iterator[str]:
    """Each word as often as it was counted, in strings of bounded length: the trainer takes texts, not counts."""
    for word, count in counts.items():
        for start in range(0, count, 10_000):
            yield f"{word} " * min(10_000, count - start)


def extend_from_counts(
    vocabulary: Vocabulary, counts: Mapping[str, int], source: str = "vocabulary"
) -> tuple[Vocabulary, list[tuple[str, int]]]:
    """Puts the most frequent new words of texts into the `[unusedN]` slots, in the order of their rows.

    A word is new if it has no piece of its own: the vocabulary splits it, or maps it to [UNK]. A BERT can then continue
    training in another domain with its own weights; the embedding row of a slot becomes the new word's
    (google-research/bert, "Pre-training tips").

    Args:
        counts: the texts' words, as from `count_words` with the casing of the vocabulary.
        source: the vocabulary's file, for messages.

    Returns: (the new vocabulary, `[(word, count)]` in the order of the rows), with at most as many words as slots.

    Raises:
        UserError: the vocabulary has no slots, or the texts have no new word that occurs twice.
    """
    slots = free_rows(vocabulary, source)
    new = [
        (word, count)
        for word, count in counts.items()
        if count >= SMALLEST_COUNT and word not in vocabulary.ids and _can_be_a_piece(word)
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


def _can_be_a_piece(word: str) -> bool:
    return len(word) <= MAX_CHARACTERS_PER_WORD and len(word.encode("utf-8")) <= MAX_PIECE_BYTES


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
    """How an older vocabulary splits the tokens that a new one adds or moves to other rows.

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


# Always single pieces, so that no word is joined to a bracket or a currency.
_SINGLE = ("(", ")", '"', "-", ".", "–", "£", "€")
_COVERAGE = 0.99995
_MULTILINGUAL_COVERAGE = 0.9995  # The trainer's default, and XLM-RoBERTa's.
_MOST_SENTENCES = 10_000_000  # More teach nothing; the trainer keeps them in memory.
_MOST_BYTES = 4192  # The trainer skips longer lines.
_MOST_PIECES = 1 << 30  # With twice as many, the trainer's numbers overflow, and it never ends.


def learn_sentencepiece(texts: Iterable[str], size: int, lower_case: bool = True) -> SentencePieceVocabulary:
    """Learns a unigram model (Kudo 2018) of at most `size` pieces from `texts`; deterministic.

    Args:
        texts: streamed once; the first `_MOST_SENTENCES` sentences are kept in memory.
        size: the number of pieces, including special tokens and single characters.
        lower_case: as for the tokenizer that will use the model.

    Raises:
        UserError: the texts have no words, `size` is too small for their characters, or the package is missing.
    """
    model = _unigram_model(
        _lines(texts, AlbertNormalizer(lower_case)),
        size,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        pad_piece=sentencepiece_vocabulary.PAD,
        unk_piece=sentencepiece_vocabulary.UNK,
        control_symbols=[CLS, SEP, MASK],
        user_defined_symbols=list(_SINGLE),
        required_chars=",",
        character_coverage=_COVERAGE,
    )
    return SentencePieceVocabulary(model, "learned vocabulary")


def learn_xlnet_pieces(texts: Iterable[str], size: int, lower_case: bool = False) -> XlnetVocabulary:
    """Like `learn_sentencepiece`, with XLNet's special tokens and the options in the README of its published code."""
    first, after_unk = xlnet_vocabulary.SPECIAL_TOKENS, 3
    model = _unigram_model(
        _lines(texts, AlbertNormalizer(lower_case)),
        size,
        control_symbols=list(first[after_unk:-1]),
        user_defined_symbols=[first[-1], *_SINGLE],
        required_chars=",",
        character_coverage=_COVERAGE,
    )
    return XlnetVocabulary(model, "learned vocabulary")


def learn_fairseq_pieces(texts: Iterable[str], size: int, lower_case: bool = False) -> FairseqVocabulary:
    """Like `learn_sentencepiece`, with XLM-RoBERTa's special tokens; `lower_case` is not used.

    The model normalizes texts by SentencePiece's own table, `nmt_nfkc`: case and accents stay.
    """
    outside = XLM_ROBERTA_DICTIONARY.shift + 1  # <mask> is not in the model.
    model = _unigram_model(_lines(texts), size, outside, character_coverage=_MULTILINGUAL_COVERAGE)
    return FairseqVocabulary(model, "learned vocabulary")


def learn_t5_pieces(texts: Iterable[str], size: int, lower_case: bool = False) -> T5Vocabulary:
    """Like `learn_fairseq_pieces`, with T5's special tokens; the pieces include 100 sentinels."""
    model = _unigram_model(
        _lines(texts),
        size,
        SENTINELS,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        **dict(zip(("pad_piece", "eos_piece", "unk_piece"), FIRST_PIECES)),
        character_coverage=_COVERAGE,
    )
    return T5Vocabulary(model, "learned vocabulary")


def _unigram_model(lines: Iterator[str], size: int, outside: int = 0, **options: Any) -> bytes:
    """Learns a unigram model from lines with the trainer's options; returns its file.

    Args:
        size: the most pieces, including those outside the model.
        outside: how many pieces are outside the model.
    """
    require_sentencepiece()
    import sentencepiece  # An extra.

    written = io.BytesIO()
    lines = itertools.islice(lines, _MOST_SENTENCES)
    first = next(lines, None)
    if first is None:
        raise UserError("texts: needs words to learn a vocabulary from. Received: none. Give files with text in them.")
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.chain([first], lines),
            model_writer=written,
            model_type="unigram",
            vocab_size=min(size - outside, _MOST_PIECES),
            hard_vocab_limit=False,
            num_threads=1,  # With several, rounding would depend on their number.
            minloglevel=2,
            **options,
        )
    except RuntimeError as error:
        found = re.search(r"required_chars\. \d+ vs (\d+)", str(error))  # Missing if the special tokens do not fit.
        least = f"at least {int(found[1]) + outside:,}" if found else "more"
        raise UserError(
            f"The vocabulary's size: needs {least} for the special tokens and the texts' characters. "
            f"Received: {size}. Give a larger size."
        ) from error
    return written.getvalue()


def _lines(texts: Iterable[str], normalize: AlbertNormalizer | None = None) -> Iterator[str]:
    """The sentences of texts, normalized or as they are; those too long for the trainer are divided."""
    sentences = (sentence for text in texts for sentence in split_sentences(text))
    for batch in utf8_batches(sentences):
        for line in normalize(batch).texts.numpy() if normalize else batch:
            if len(line) > _MOST_BYTES:
                yield from divide_text(line.decode("utf-8"), _MOST_BYTES // 4)  # UTF-8 takes at most 4 bytes.
            elif line:
                yield line.decode("utf-8")


def learn_byte_pieces(texts: Iterable[str], size: int, lower_case: bool = False) -> ByteVocabulary:
    """Learns byte-level BPE (Radford et al. 2019) of at most `size` pieces from `texts`; deterministic.

    Ids are in RoBERTa's order: <s> <pad> </s> <unk>, the bytes, the pieces as they were learned, <mask>.

    Args:
        texts: streamed once; memory grows with the number of different words.
        lower_case: not used, as the tokenizer never lower-cases.

    Raises:
        UserError: the texts are empty, or `size` is too small.
    """
    first_pieces = [*standalone_byte_tokenizer.SPECIAL_TOKENS[:-1], *byte_characters().values()]
    if size <= len(first_pieces):
        raise UserError(
            f"The vocabulary's size: needs more than the {len(first_pieces) + 1} special tokens and bytes. "
            f"Received: {size}. Give a larger size."
        )
    counts = _count_parts(texts)
    if not counts:
        raise UserError("texts: needs words to learn a vocabulary from. Received: none. Give files with text in them.")
    divisor = count_divisor(counts.total())
    counts = Counter({part: count // divisor for part, count in counts.items() if count >= divisor})
    # No part contains a space: it is written as another character.
    tokenizer = _trained(BPE(), BpeTrainer, size - 1, first_pieces, counts)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = [*sorted(model["vocab"], key=model["vocab"].__getitem__), standalone_byte_tokenizer.MASK]
    return ByteVocabulary(tokens, [(first, second) for first, second in model["merges"]], "learned vocabulary")


def _count_parts(texts: Iterable[str]) -> Counter[str]:
    """Counts the parts of texts, in the characters that files write for their bytes."""
    split = PartSplitter()
    counts: Counter[bytes] = Counter()
    for batch in utf8_batches(texts):
        decoded = tf.strings.unicode_decode(batch, "UTF-8", errors="ignore")
        counts.update(split(decoded).values.numpy().tolist())
    character_of = byte_characters()
    found: Counter[str] = Counter()
    for part, count in counts.items():
        found["".join(character_of[byte] for byte in part[:MAX_PIECE_BYTES])] += count
    return found


# By `vocabulary.kind`: function (texts, size, lower_case) -> a vocabulary.
LEARNERS: dict[str, Callable[[Iterable[str], int, bool], Vocabulary]] = {
    WORDPIECE: learn_vocabulary,
    SENTENCEPIECE: learn_sentencepiece,
    BYTES: learn_byte_pieces,
    XLM_ROBERTA: learn_fairseq_pieces,
    T5: learn_t5_pieces,
    XLNET: learn_xlnet_pieces,
}
