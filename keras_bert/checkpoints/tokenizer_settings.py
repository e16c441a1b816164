"""How a folder's tokenizer treats case, accents and ideographs, and which file holds its pieces."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from keras_bert import files, settings
from keras_bert.errors import UserError
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary
from keras_bert.text.vocabulary import Vocabulary

VOCABULARY, TOKENIZER_CONFIG, TOKENIZER = "vocab.txt", "tokenizer_config.json", "tokenizer.json"
SENTENCEPIECE = "spiece.model"

# Tokenizer classes of transformers: those that follow tokenizer.json, and BERT's.
_GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")
_BERTS = ("BertTokenizer", "BertTokenizerFast")
_ALBERTS = ("AlbertTokenizer", "AlbertTokenizerFast")
_QUOTES = "fold_quotes"  # Our own field: whether texts' `` and '' become ".


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """The arguments of `make_tokenizer` besides the vocabulary, as `**vars(settings)`.

    Attributes:
        lower_case: whether texts are lower-cased.
        strip_accents: whether accents are removed; None: only if texts are lower-cased.
        split_chinese: whether every ideograph is a word of its own.
        quotes: whether a SentencePiece tokenizer turns `` and '' into ".
    """

    lower_case: bool = True
    strip_accents: bool | None = None
    split_chinese: bool = True
    quotes: bool = True

    def in_effect(self, vocabulary: Vocabulary) -> dict[str, bool]:
        """The settings that the tokenizer of a vocabulary uses, by name."""
        if isinstance(vocabulary, SentencePieceVocabulary):
            return {"lower_case": self.lower_case, "quotes": self.quotes}
        strip_accents = self.lower_case if self.strip_accents is None else self.strip_accents
        return {
            "lower_case": self.lower_case,
            "strip_accents": strip_accents,
            "split_chinese": self.split_chinese,
        }

    def is_berts_own(self) -> bool:
        """Whether Google's tokenizer supports these settings, of which it only has `lower_case`."""
        return self.strip_accents in (None, self.lower_case) and self.split_chinese


def vocabulary_file(folder: str) -> str:
    """The path of vocab.txt or of spiece.model, or else of tokenizer.json, which also holds WordPiece's pieces.

    Raises `UserError` for none of them.
    """
    for name in (VOCABULARY, SENTENCEPIECE, TOKENIZER):
        path = files.join(folder, name)
        if files.is_file(path):
            return path
    raise UserError(f"{folder}: needs {VOCABULARY} or {SENTENCEPIECE} and lacks both.")


def read_tokenizer_settings(folder: str) -> TokenizerSettings:
    """The settings of a Hugging Face folder; BERT's defaults for those that it does not give.

    tokenizer_config.json overrides tokenizer.json, as in transformers, unless it names a generic class, which
    tokenizer.json alone defines.

    Raises:
        UserError: the tokenizer is neither BERT's nor ALBERT's.
    """
    config = _read_json(files.join(folder, TOKENIZER_CONFIG))
    if vocabulary_file(folder).endswith(SENTENCEPIECE):
        return _alberts_settings(config, files.join(folder, TOKENIZER_CONFIG))
    named = config.get("tokenizer_class") or _BERTS[0]
    wrong = named if named not in (*_BERTS, *_GENERIC) else None
    if config.get("do_basic_tokenize") is False:
        wrong = "do_basic_tokenize false"
    if wrong:
        path = files.join(folder, TOKENIZER_CONFIG)
        raise UserError(f"{path}: needs BERT's tokenizer. Received: {wrong}, which is not supported.")
    tokenizer = _read_tokenizer_file(files.join(folder, TOKENIZER))
    fields = {
        "lower_case": config.get("do_lower_case"),
        "strip_accents": config.get("strip_accents"),
        "split_chinese": config.get("tokenize_chinese_chars"),
    }
    given = {key: bool(value) for key, value in fields.items() if value is not None}
    return TokenizerSettings(**({**given, **tokenizer} if named in _GENERIC else {**tokenizer, **given}))


def _alberts_settings(config: Mapping[str, Any], path: str) -> TokenizerSettings:
    """The settings of ALBERT's tokenizer, from the content of tokenizer_config.json."""
    named = config.get("tokenizer_class") or _ALBERTS[0]
    wrong = named if named not in (*_ALBERTS, *_GENERIC) else None
    for field, own in (("keep_accents", False), ("remove_space", True)):
        if config.get(field) not in (None, own):
            wrong = f"{field} {config[field]}"
    if wrong:
        raise UserError(
            f"{path}: needs ALBERT's tokenizer for {SENTENCEPIECE}. Received: {wrong}, which is not supported."
        )
    lower_case, quotes = config.get("do_lower_case"), config.get(_QUOTES)
    return TokenizerSettings(lower_case is not False, quotes=quotes is not False)


def _read_tokenizer_file(path: str) -> dict[str, bool]:
    """The settings that tokenizer.json gives; empty if there is no such file."""
    content = _read_json(path)
    if not content:
        return {}
    model, normalizer = content.get("model") or {}, content.get("normalizer") or {}
    if model.get("type", "WordPiece") != "WordPiece":
        raise UserError(
            f"{path}: needs a WordPiece tokenizer. Received: {model['type']}. If it is ALBERT's, put its "
            f"{SENTENCEPIECE} beside this file."
        )
    if normalizer.get("type") != "BertNormalizer":
        raise UserError(
            f"{path}: needs BERT's normalizer (BertNormalizer). Received: {normalizer.get('type')}, "
            "which is not supported."
        )
    given = {
        "lower_case": normalizer.get("lowercase"),
        "strip_accents": normalizer.get("strip_accents"),
        "split_chinese": normalizer.get("handle_chinese_chars"),
    }
    return {key: value for key, value in given.items() if value is not None}


def infer_casing(vocabulary_path: str) -> tuple[bool, str]:
    """`(lower_case, a line that says why)`, inferred from a vocabulary without settings."""
    if vocabulary_path.endswith(".model"):
        tokens = Vocabulary.from_file(vocabulary_path).tokens
    else:
        with files.open_file(vocabulary_path, "r", errors="replace", newline="\n") as stream:
            tokens = [line.rstrip("\r\n") for line in stream]
    capital = first_capital(tokens)
    if capital is None:
        return True, f"{vocabulary_path} has no piece with a capital letter, so the model is taken to be uncased."
    return False, f"{vocabulary_path} has pieces with capital letters ({capital}), so the model is taken to be cased."


def first_capital(tokens: Iterable[str]) -> str | None:
    """The first piece with a capital letter, without its mark; None in a vocabulary for lower-cased texts."""
    pieces = (token.removeprefix("##").removeprefix("▁") for token in tokens)
    # Special tokens such as [CLS] and <S> do not count, nor do symbols without lower case such as ℝ.
    return next((piece for piece in pieces if piece.isalpha() and piece != piece.lower()), None)


def tokenizer_config(
    tokenizer_settings: TokenizerSettings, max_positions: int, vocabulary: Vocabulary
) -> dict[str, Any]:
    """The content of tokenizer_config.json."""
    if isinstance(vocabulary, SentencePieceVocabulary):
        return {
            "do_lower_case": tokenizer_settings.lower_case,
            "keep_accents": False,
            "remove_space": True,
            **({} if tokenizer_settings.quotes else {_QUOTES: False}),
            "tokenizer_class": _ALBERTS[0],
            "model_max_length": max_positions,
            "bos_token": "[CLS]",
            "eos_token": "[SEP]",
            "unk_token": "<unk>",
            "sep_token": "[SEP]",
            "pad_token": "<pad>",
            "cls_token": "[CLS]",
            "mask_token": "[MASK]",
        }
    return {
        "do_lower_case": tokenizer_settings.lower_case,
        "tokenize_chinese_chars": tokenizer_settings.split_chinese,
        "strip_accents": tokenizer_settings.strip_accents,
        "tokenizer_class": "BertTokenizer",
        "model_max_length": max_positions,
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    }


def _read_json(path: str) -> Mapping[str, Any]:
    return settings.read_json(path) if files.is_file(path) else {}
