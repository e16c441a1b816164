"""How a folder's tokenizer treats case, accents and ideographs, and BERT's own settings in Hugging Face's files."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.text.standalone_tokenizer import MAX_CHARACTERS_PER_WORD, strips
from keras_bert.text.tokenizer_json import GENERIC, TOKENIZER, TOKENIZER_CONFIG, read_if_there

if TYPE_CHECKING:
    from keras_bert.text.vocabulary import Vocabulary

# Tokenizer classes of transformers besides the generic ones.
_BERTS = ("BertTokenizer", "BertTokenizerFast")
_FIELDS = {"lower_case": "do_lower_case", "strip_accents": "strip_accents", "split_chinese": "tokenize_chinese_chars"}
_IN_NORMALIZER = {"lower_case": "lowercase", "strip_accents": "strip_accents", "split_chinese": "handle_chinese_chars"}
_NORMALIZER, _PRE_TOKENIZER = "BertNormalizer", "BertPreTokenizer"
_MAX_CHARACTERS = "max_input_chars_per_word"  # In tokenizer.json and, our own, in tokenizer_config.json.


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """The settings of the package's tokenizers; each kind of vocabulary names those that its own has.

    Attributes:
        lower_case: whether texts are lower-cased.
        strip_accents: whether accents are removed; None: only if texts are lower-cased.
        split_chinese: whether every ideograph is a word of its own.
        quotes: whether a SentencePiece tokenizer turns `` and '' into ".
        max_characters_per_word: a longer word is one [UNK].
    """

    lower_case: bool = True
    strip_accents: bool | None = None
    split_chinese: bool = True
    quotes: bool = True
    max_characters_per_word: int = MAX_CHARACTERS_PER_WORD

    def in_effect(self, vocabulary: "Vocabulary") -> dict[str, bool | int]:
        """The settings that the tokenizer of a vocabulary uses, by name."""
        values = {**vars(self), "strip_accents": strips(self.lower_case, self.strip_accents)}
        return {name: values[name] for name in vocabulary.tokenizer_settings}

    def is_berts_own(self) -> bool:
        """Whether Google's tokenizer supports these settings, of which it only has `lower_case`."""
        return self.strip_accents in (None, self.lower_case) and self.split_chinese


def read_berts_settings(
    folder: str, config: Mapping[str, Any], lower_case: bool | None
) -> tuple[TokenizerSettings, list[str]]:
    """`Vocabulary.read_settings` of WordPieces.

    As in transformers, tokenizer_config.json counts and, where it is silent, the default of BERT's class; a generic
    class follows tokenizer.json. A line tells where the file that does not count says otherwise.
    """
    config_file, tokenizer_file = files.join(folder, TOKENIZER_CONFIG), files.join(folder, TOKENIZER)
    said = {} if lower_case is None else {"lower_case": lower_case}
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
    given: dict[str, Any] = {ours: bool(config[name]) for ours, name in _FIELDS.items() if config.get(name) is not None}
    counts, other = ({**given, **in_json}, given) if named in GENERIC and content else (given, in_json)
    found = TokenizerSettings(**{**counts, **said, "max_characters_per_word": longest})
    notes = []
    if differ := _differences(found, dataclasses.replace(found, **{**other, **said})):
        names = (TOKENIZER, TOKENIZER_CONFIG) if named in GENERIC else (TOKENIZER_CONFIG, TOKENIZER)
        notes.append(f"{folder}: {names[0]} counts, as in transformers, where {names[1]} differs: {differ}.")
    if lower_case is None and not content and config.get("do_lower_case") is None:
        notes.append(no_casing_note(folder))
    return found, notes


def no_casing_note(folder: str) -> str:
    """The line to show if no file of a folder says whether texts are lower-cased."""
    return (
        f"{folder}: no file says whether texts are lower-cased. They are, as in transformers; if that is wrong, "
        f'put "do_lower_case": false into {TOKENIZER_CONFIG}.'
    )


def _differences(counts: TokenizerSettings, other: TokenizerSettings) -> str:
    """What one tokenizer does and another does not, in the names of tokenizer_config.json; "" for the same."""
    values = [{**vars(each), "strip_accents": strips(each.lower_case, each.strip_accents)} for each in (counts, other)]
    pairs = [(name, *(str(value[ours]).lower() for value in values)) for ours, name in _FIELDS.items()]
    return ", ".join(f"{name} {one}, not {two}" for name, one, two in pairs if one != two)


def _read_tokenizer_file(path: str, content: Mapping[str, Any], is_generic: bool) -> dict[str, Any]:
    """The settings that the content of tokenizer.json gives. Raises `UserError` for another tokenizer than BERT's."""
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
    in_json = {ours: normalizer[name] for ours, name in _IN_NORMALIZER.items() if name in normalizer}
    return {ours: value for ours, value in in_json.items() if value is not None or ours == "strip_accents"}


def berts_tokenizer_config(settings: TokenizerSettings, max_positions: int) -> dict[str, Any]:
    """The content of tokenizer_config.json for WordPieces."""
    longest = settings.max_characters_per_word
    return {
        "do_lower_case": settings.lower_case,
        "tokenize_chinese_chars": settings.split_chinese,
        "strip_accents": settings.strip_accents,
        **({_MAX_CHARACTERS: longest} if longest != MAX_CHARACTERS_PER_WORD else {}),
        "tokenizer_class": "BertTokenizer",
        "model_max_length": max_positions,
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    }
