"""Hugging Face's tokenizer files: the pieces, the added tokens, and the settings."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath
from keras_bert.core.yaml_and_json import read_if_there, read_json
from keras_bert.text.standalone_tokenizer import (
    FLAGS,
    MAX_CHARACTERS_PER_WORD,
    AddedToken,
    added_token,
    beside_pieces,
    strips,
)

if TYPE_CHECKING:
    from keras_bert.text.vocabulary import Vocabulary

CONTINUATION = "##"
TOKENIZER_CONFIG, TOKENIZER, ADDED_TOKENS = "tokenizer_config.json", "tokenizer.json", "added_tokens.json"
SPECIAL_TOKENS_MAP = "special_tokens_map.json"
TOKENIZER_FILES = (TOKENIZER, TOKENIZER_CONFIG, ADDED_TOKENS, SPECIAL_TOKENS_MAP)
_LARGEST_FLOAT32 = (2 - 2**-23) * 2.0**127
# Classes of transformers that follow tokenizer.json in everything; BERT's own class takes only the pieces from it.
GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")


def read_pieces(path: StrPath) -> list[str]:
    """The pieces in the order of their ids.

    Raises:
        UserError: the file is not JSON, its model is not WordPiece with "##", or ids are missing or duplicated.
    """
    content = read_json(path)
    model = content.get("model") or {}
    if not isinstance(model, dict):
        raise UserError(f"{path}: needs a model that is an object. Received: {type(model).__name__}.")
    pieces = model.get("vocab")
    if (kind := model.get("type", "WordPiece")) != "WordPiece" or not isinstance(pieces, dict):
        received = kind if pieces else "a JSON file without one"
        raise UserError(f"{path}: needs a WordPiece vocabulary. Received: {received}. Give a BERT's file.")
    prefix = model.get("continuing_subword_prefix", CONTINUATION)
    if prefix != CONTINUATION:
        raise UserError(f"{path}: needs the prefix {CONTINUATION!r} inside words. Received: {prefix!r}.")
    return in_order(pieces, path)


def in_order(ids: Any, path: StrPath) -> list[str]:
    """The pieces of `{piece: id}` in the order of their ids.

    Raises:
        UserError: `ids` is no such mapping, or ids are missing or duplicated.
    """
    odd = [number for number in ids.values() if type(number) is not int] if isinstance(ids, dict) else [ids]
    if odd:
        raise UserError(f"{path}: needs pieces with whole numbers as ids. Received: {odd[0]!r:.60}. Fetch it again.")
    piece_of = {number: piece for piece, number in ids.items()}
    absent = next((number for number in range(len(ids)) if number not in piece_of), None)
    if absent is not None:
        raise UserError(
            f"{path}: needs one piece for every id. Received: {len(ids):,} pieces, none with id {absent}. Give each "
            "piece the next id."
        )
    return [piece_of[number] for number in range(len(ids))]


def read_added_tokens(path: StrPath, pieces: Sequence[str]) -> list[AddedToken]:
    """The added tokens of a vocabulary, from the files in its folder, as transformers 5 finds them.

    They are in tokenizer_config.json's `added_tokens_decoder` or, if it has none, in added_tokens.json and
    tokenizer.json; for a generic class, in tokenizer.json and `added_tokens_decoder`. Special tokens that are listed
    without an id are pieces. BERT's own special tokens are left out: in texts they are words.

    Args:
        path: the file of the pieces.

    Raises:
        UserError: a file is broken.
    """
    folder = files.parent(path)
    config = read_if_there(files.join(folder, TOKENIZER_CONFIG))
    decoder, is_generic = config.get("added_tokens_decoder"), config.get("tokenizer_class") in GENERIC
    found: dict[str, AddedToken] = {}

    def add(name: str, items: Callable[[], Iterable[tuple[Any, Any]]]) -> None:
        file, tokens = files.join(folder, name), []
        try:
            for index, fields in items():
                for flag in FLAGS:
                    read_flag(fields, flag, file)
                tokens.append(added_token(index, fields))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise UserError(f"{file}: needs added_tokens with a content and an id each. Received: others.") from None
        found.update({token.content: token for token in tokens})

    names = _special_names(config, files.join(folder, TOKENIZER_CONFIG))
    if decoder is None:
        file = files.join(folder, SPECIAL_TOKENS_MAP)
        names |= _special_names(read_if_there(file), file)
        ids = read_if_there(files.join(folder, ADDED_TOKENS))
        add(ADDED_TOKENS, lambda: ((ids[token], {"content": token, "special": token in names}) for token in ids))
    if decoder is None or is_generic:
        listed = read_if_there(files.join(folder, TOKENIZER)).get("added_tokens") or []
        add(TOKENIZER, lambda: ((fields["id"], fields) for fields in listed))
    add(TOKENIZER_CONFIG, lambda: (decoder or {}).items())
    rows = {piece: row for row, piece in enumerate(pieces)}
    for name in names & rows.keys() - found.keys():
        found[name] = added_token(rows[name], {"content": name, "special": True})
    return beside_pieces(found.values(), rows)


def unigrams(content: Mapping[str, Any]) -> list[tuple[str, float]] | None:
    """The pieces of the unigram model in a tokenizer.json, with their scores; None for another model."""
    model = content.get("model")
    pieces = model.get("vocab") if isinstance(model, dict) and model.get("type") == "Unigram" else None
    if not isinstance(pieces, list) or not all(map(_is_scored, pieces)):
        return None
    return [(text, score) for text, score in pieces]


def _is_scored(piece: Any) -> bool:
    """Whether SentencePiece's file can hold the piece: no lone surrogate, which JSON allows, and a float32 score."""
    if not isinstance(piece, list) or len(piece) != 2 or not isinstance(piece[0], str):
        return False
    is_text = piece[0].encode("utf-8", "ignore").decode() == piece[0]
    return is_text and isinstance(piece[1], int | float) and abs(piece[1]) <= _LARGEST_FLOAT32


def _special_names(values: Mapping[str, Any], path: str) -> set[str]:
    """The special tokens besides BERT's own that the tokenizer_config.json or special_tokens_map.json at `path` lists.

    Raises `UserError` for other values: a text instead of a list would become one token per character.
    """
    field = next(filter(values.get, ("extra_special_tokens", "additional_special_tokens")), "")
    listed = values.get(field) or []
    tokens = list(listed.values()) if isinstance(listed, dict) else listed
    names: list[Any] = []
    if isinstance(tokens, list):
        names = [each.get("content") if isinstance(each, dict) else each for each in tokens if each is not None]
    if not isinstance(tokens, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"{path}: needs a list of tokens as {field}. Received: {listed!r}.")
    return set(names)


# Tokenizer classes of transformers besides the generic ones; all compute the same.
_BERTS = tuple(f"{kind}Tokenizer{fast}" for kind in ("Bert", "DistilBert", "Electra") for fast in ("", "Fast"))
FLAG_FIELDS = {
    "lower_case": "do_lower_case",
    "strip_accents": "strip_accents",
    "split_chinese": "tokenize_chinese_chars",
}
_IN_NORMALIZER = {"lower_case": "lowercase", "strip_accents": "strip_accents", "split_chinese": "handle_chinese_chars"}
_NORMALIZER, _PRE_TOKENIZER = "BertNormalizer", "BertPreTokenizer"
_MAX_CHARACTERS = "max_input_chars_per_word"  # In tokenizer.json and, our own, in tokenizer_config.json.


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """The settings of the package's tokenizers; each kind of vocabulary names the ones that its tokenizer has.

    Attributes:
        lower_case: whether texts are lower-cased.
        strip_accents: whether accents are removed; None: only if texts are lower-cased.
        split_chinese: whether every ideograph is a word of its own.
        quotes: whether a SentencePiece tokenizer turns `` and '' into ".
        max_characters_per_word: a longer word is one [UNK].
        prefix_space: whether byte-level BPE reads a text as if a space came before it, so that its first word is the
            same piece as elsewhere.
    """

    lower_case: bool = True
    strip_accents: bool | None = None
    split_chinese: bool = True
    quotes: bool = True
    max_characters_per_word: int = MAX_CHARACTERS_PER_WORD
    prefix_space: bool = True

    def in_effect(self, vocabulary: "Vocabulary") -> dict[str, bool | int]:
        """The settings that the tokenizer of a vocabulary uses, by name."""
        values = {**vars(self), "strip_accents": strips(self.lower_case, self.strip_accents)}
        return {name: values[name] for name in vocabulary.tokenizer_settings}

    def is_berts_own(self) -> bool:
        """Whether Google's tokenizer supports these settings; it has only `lower_case`."""
        return self.strip_accents in (None, self.lower_case) and self.split_chinese

    def require_berts_own(self, name: StrPath, option: str) -> None:
        """Raises `UserError`, which proposes another `option`, unless pretraining can tokenize with these settings."""
        if not self.is_berts_own():
            raise UserError(
                f"{name}: pretraining needs BERT's own tokenizer, which removes accents if it lower-cases, and splits "
                f"Chinese characters. Received: do_lower_case {self.lower_case}, strip_accents {self.strip_accents}, "
                f"tokenize_chinese_chars {self.split_chinese}. Give another {option}."
            )


def read_flag(values: Mapping[str, Any], name: str, path: str) -> bool | None:
    """The value of a boolean field, which may be 1 or 0; None if it is null or missing.

    Raises `UserError` for other values, such as the text "false", which Python would take for true.
    """
    value = values.get(name)
    if value not in (None, True, False):
        raise UserError(f"{path}: needs true or false as {name}. Received: {value!r}.")
    return None if value is None else bool(value)


def read_berts_settings(
    folder: str, config: Mapping[str, Any], lower_case: bool | None
) -> tuple[TokenizerSettings, list[str]]:
    """`Vocabulary.read_settings` of WordPieces.

    As in transformers, tokenizer_config.json decides, and the defaults of BERT's class fill its gaps; a generic class
    follows tokenizer.json. A line tells the user where the other file differs.
    """
    config_file, tokenizer_file = files.join(folder, TOKENIZER_CONFIG), files.join(folder, TOKENIZER)
    requested = {} if lower_case is None else {"lower_case": lower_case}
    named = config.get("tokenizer_class") or _BERTS[0]
    wrong = named if named not in (*_BERTS, *GENERIC) else None
    if config.get("do_basic_tokenize") is False:
        wrong = "do_basic_tokenize false"
    if wrong:
        raise UserError(f"{config_file}: needs BERT's tokenizer. Received: {wrong}, which is not supported.")
    content = read_if_there(tokenizer_file)
    in_json = _read_tokenizer_file(tokenizer_file, content, named in GENERIC) if content else {}
    longest = (content.get("model") or config).get(_MAX_CHARACTERS, MAX_CHARACTERS_PER_WORD)
    if type(longest) is not int or longest < 1:
        file = tokenizer_file if content else config_file
        raise UserError(f"{file}: needs a positive whole number as {_MAX_CHARACTERS}. Received: {longest!r}.")
    flags = {ours: read_flag(config, name, config_file) for ours, name in FLAG_FIELDS.items()}
    given: dict[str, Any] = {ours: value for ours, value in flags.items() if value is not None}
    deciding, ignored = ({**given, **in_json}, given) if named in GENERIC and content else (given, in_json)
    found = TokenizerSettings(**{**deciding, **requested, "max_characters_per_word": longest})
    notes = []
    if differ := _differences(found, dataclasses.replace(found, **{**ignored, **requested})):
        names = (TOKENIZER, TOKENIZER_CONFIG) if named in GENERIC else (TOKENIZER_CONFIG, TOKENIZER)
        notes.append(f"{folder}: {names[0]} takes precedence, as in transformers; {names[1]} differs in {differ}.")
    if lower_case is None and not content and config.get("do_lower_case") is None:
        notes.append(no_casing_note(folder))
    return found, notes


def no_casing_note(folder: str) -> str:
    """The line to show if no file of a folder says whether texts are lower-cased."""
    return (
        f"{folder}: no file says whether texts are lower-cased. They are, as in transformers; if that is wrong, "
        f'put "do_lower_case": false into {TOKENIZER_CONFIG}.'
    )


def _differences(deciding: TokenizerSettings, ignored: TokenizerSettings) -> str:
    """How the settings of two tokenizers differ, by their names in tokenizer_config.json; "" if they do not."""
    both = (deciding, ignored)
    values = [{**vars(each), "strip_accents": strips(each.lower_case, each.strip_accents)} for each in both]
    pairs = [(name, *(str(value[ours]).lower() for value in values)) for ours, name in FLAG_FIELDS.items()]
    return ", ".join(f"{name} ({one}, not {two})" for name, one, two in pairs if one != two)


def _read_tokenizer_file(path: str, content: Mapping[str, Any], is_generic: bool) -> dict[str, Any]:
    """The settings in the content of a tokenizer.json. Raises `UserError` if its tokenizer is not BERT's."""
    model, normalizer, splitter = (content.get(part) or {} for part in ("model", "normalizer", "pre_tokenizer"))
    if not all(isinstance(part, dict) for part in (model, normalizer, splitter)):
        raise UserError(f"{path}: needs a model, a normalizer and a pre_tokenizer that are objects. Received: others.")
    if model.get("type", "WordPiece") != "WordPiece":
        raise UserError(
            f"{path}: needs a WordPiece tokenizer. Received: {model['type']}. If it is ALBERT's, put its "
            "spiece.model beside this file."
        )
    for what, part, needed in (("normalizer", normalizer, _NORMALIZER), ("pre_tokenizer", splitter, _PRE_TOKENIZER)):
        if part.get("type") != needed:
            raise UserError(
                f"{path}: needs BERT's {what} ({needed}). Received: {part.get('type')}, which is not supported."
            )
    if is_generic and normalizer.get("clean_text") is False:
        raise UserError(f"{path}: needs clean_text true, as BERT's is. Received: false, which is not supported.")
    in_json = {ours: read_flag(normalizer, name, path) for ours, name in _IN_NORMALIZER.items() if name in normalizer}
    return {ours: value for ours, value in in_json.items() if value is not None or ours == "strip_accents"}


def without_segments(fields: Mapping[str, Any]) -> dict[str, Any]:
    """tokenizer_config.json's content for a model of one segment: BERT's tokenizer would give the second text 1."""
    names = ["input_ids", "attention_mask"]
    return {**fields, **({"model_input_names": names} if fields["tokenizer_class"] in _BERTS else {})}


def berts_tokenizer_config(settings: TokenizerSettings, max_positions: int) -> dict[str, Any]:
    """The content of tokenizer_config.json for WordPieces."""
    longest = settings.max_characters_per_word
    return {
        "do_lower_case": settings.lower_case,
        "tokenize_chinese_chars": settings.split_chinese,
        "strip_accents": settings.strip_accents,
        **({_MAX_CHARACTERS: longest} if longest != MAX_CHARACTERS_PER_WORD else {}),
        "tokenizer_class": _BERTS[0],
        "model_max_length": max_positions,
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    }
