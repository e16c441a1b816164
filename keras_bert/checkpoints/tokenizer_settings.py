"""How a folder's tokenizer treats case, accents and ideographs, and which file holds its pieces."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_bert import files, settings
from keras_bert.errors import UserError

VOCABULARY, TOKENIZER_CONFIG, TOKENIZER = "vocab.txt", "tokenizer_config.json", "tokenizer.json"

# Tokenizer classes of transformers: those that follow tokenizer.json, and BERT's.
_GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")
_BERTS = ("BertTokenizer", "BertTokenizerFast")


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """The arguments of `WordPieceTokenizer` besides the vocabulary, as `**vars(settings)`.

    Attributes:
        lower_case: whether texts are lower-cased.
        strip_accents: whether accents are removed; None: only if texts are lower-cased.
        split_chinese: whether every ideograph is a word of its own.
    """

    lower_case: bool = True
    strip_accents: bool | None = None
    split_chinese: bool = True

    def is_berts_own(self) -> bool:
        """Whether Google's tokenizer supports these settings, of which it only has `lower_case`."""
        return self.strip_accents in (None, self.lower_case) and self.split_chinese


def vocabulary_file(folder: str) -> str:
    """The path of vocab.txt, or else of tokenizer.json, which also holds the pieces. Raises `UserError` for neither."""
    for name in (VOCABULARY, TOKENIZER):
        path = files.join(folder, name)
        if files.is_file(path):
            return path
    raise UserError(f"{folder}: needs {VOCABULARY} and lacks it.")


def read_tokenizer_settings(folder: str) -> TokenizerSettings:
    """The settings of a Hugging Face folder; BERT's defaults for those that it does not give.

    tokenizer_config.json overrides tokenizer.json, as in transformers, unless it names a generic class, which
    tokenizer.json alone defines.

    Raises:
        UserError: the tokenizer is not BERT's.
    """
    config = _read_json(files.join(folder, TOKENIZER_CONFIG))
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


def _read_tokenizer_file(path: str) -> dict[str, bool]:
    """The settings that tokenizer.json gives; empty if there is no such file."""
    content = _read_json(path)
    if not content:
        return {}
    model, normalizer = content.get("model") or {}, content.get("normalizer") or {}
    if model.get("type", "WordPiece") != "WordPiece":
        raise UserError(f"{path}: needs a WordPiece tokenizer. Received: {model['type']}, which is not supported.")
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
    with files.open_file(vocabulary_path, "r", errors="replace", newline="\n") as stream:
        pieces = [line.rstrip("\r\n").removeprefix("##") for line in stream]
    # Special tokens such as [CLS] and <S> do not count, nor do symbols without lower case such as ℝ.
    capital = next((piece for piece in pieces if piece.isalpha() and piece != piece.lower()), None)
    if capital is None:
        return True, f"{vocabulary_path} has no piece with a capital letter, so the model is taken to be uncased."
    return False, f"{vocabulary_path} has pieces with capital letters ({capital}), so the model is taken to be cased."


def tokenizer_config(tokenizer_settings: TokenizerSettings, max_positions: int) -> dict[str, Any]:
    """The content of tokenizer_config.json."""
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
