"""Learns a SentencePiece model from text, as ALBERT's was (google-research/albert, README.md)."""

import io
import itertools
from collections.abc import Iterable, Iterator

from keras_bert.core import imports
from keras_bert.core.errors import UserError
from keras_bert.text.sentencepiece_vocabulary import PAD, UNK, SentencePieceVocabulary
from keras_bert.text.sentences import split_sentences, utf8_batches
from keras_bert.text.vocabulary import CLS, MASK, SEP

PACKAGE = "sentencepiece"
# Always single pieces, so that no word is joined to a bracket or a currency.
_SINGLE = ("(", ")", '"', "-", ".", "–", "£", "€")
_COVERAGE = 0.99995
_MOST_SENTENCES = 10_000_000  # More teach nothing; the trainer keeps them in memory.
_MOST_BYTES = 4192  # The trainer skips longer lines.


def require_sentencepiece() -> None:
    """Raises `UserError` if the package that learns models is not installed. Using a model does not need it."""
    imports.require(PACKAGE, "Learning a SentencePiece model")


def learn_sentencepiece(texts: Iterable[str], size: int, lower_case: bool = True) -> SentencePieceVocabulary:
    """Learns a unigram model (Kudo 2018) of at most `size` pieces from `texts`; deterministic.

    Args:
        texts: streamed once; the first `_MOST_SENTENCES` sentences are kept in memory.
        size: the number of pieces, including special tokens and single characters.
        lower_case: as for the tokenizer that will use the model.

    Raises:
        UserError: the texts have no words, `size` is too small for their characters, or the package is missing.
    """
    require_sentencepiece()
    import sentencepiece

    written = io.BytesIO()
    lines = itertools.islice(_lines(texts, lower_case), _MOST_SENTENCES)
    first = next(lines, None)
    if first is None:
        raise UserError("texts: needs words to learn a vocabulary from. Received: none. Give files with text in them.")
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.chain([first], lines),
            model_writer=written,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=_COVERAGE,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            pad_piece=PAD,
            unk_piece=UNK,
            control_symbols=[CLS, SEP, MASK],
            user_defined_symbols=list(_SINGLE),
            required_chars=",",
            num_threads=1,  # With several, rounding would depend on their number.
            minloglevel=2,
        )
    except RuntimeError as error:
        told = str(error).rpartition("] ")[2].strip() or str(error)
        raise UserError(f"The vocabulary's size: {told} Received: {size}. Give another size or more text.") from None
    return SentencePieceVocabulary(written.getvalue(), "learned vocabulary")


def _lines(texts: Iterable[str], lower_case: bool) -> Iterator[str]:
    """The normalized sentences of texts."""
    from keras_bert.text.sentencepiece import AlbertNormalizer

    normalize = AlbertNormalizer(lower_case)
    sentences = (sentence for text in texts for sentence in split_sentences(text))
    for batch in utf8_batches(sentences):
        for line in normalize(batch).texts.numpy():
            if 0 < len(line) <= _MOST_BYTES:
                yield line.decode("utf-8")
