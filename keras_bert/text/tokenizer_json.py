"""Hugging Face's tokenizer files: pieces in tokenizer.json, and the tokens that were added to a vocabulary."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from keras_bert.core import files, settings
from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath
from keras_bert.text.standalone_tokenizer import AddedToken, added_token

CONTINUATION = "##"
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TOKENIZER_CONFIG, TOKENIZER, ADDED_TOKENS = "tokenizer_config.json", "tokenizer.json", "added_tokens.json"
SPECIAL_TOKENS_MAP = "special_tokens_map.json"
TOKENIZER_FILES = (TOKENIZER, TOKENIZER_CONFIG, ADDED_TOKENS, SPECIAL_TOKENS_MAP)
# Classes of transformers that follow tokenizer.json in everything; BERT's own takes its pieces only.
GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")


def read_pieces(path: StrPath) -> list[str]:
    """The pieces in the order of their ids.

    Raises:
        UserError: the file is not JSON, its model is not WordPiece with "##", or ids are missing or duplicated.
    """
    content = settings.read_json(path)
    model = content.get("model") or {}
    if not isinstance(model, dict):
        raise UserError(f"{path}: needs a model that is an object. Received: {type(model).__name__}.")
    pieces = model.get("vocab")
    if model.get("type", "WordPiece") != "WordPiece" or not isinstance(pieces, dict):
        raise UserError(f"{path}: needs a WordPiece vocabulary. Received: {model.get('type')}. Give a BERT's file.")
    prefix = model.get("continuing_subword_prefix", CONTINUATION)
    if prefix != CONTINUATION:
        raise UserError(f"{path}: needs the prefix {CONTINUATION!r} inside words. Received: {prefix!r}.")
    odd = next((number for number in pieces.values() if type(number) is not int), None)
    if odd is not None:
        raise UserError(f"{path}: needs whole numbers as ids. Received: {odd!r}.")
    piece_of = {number: piece for piece, number in pieces.items()}
    if sorted(piece_of) != list(range(len(pieces))):
        absent = next(number for number in range(len(pieces) + 1) if number not in piece_of)
        raise UserError(
            f"{path}: needs one piece for every id. Received: {len(pieces)} pieces, none of them with id {absent}."
        )
    return [piece_of[number] for number in range(len(pieces))]


def read_added_tokens(path: StrPath, pieces: Sequence[str]) -> list[AddedToken]:
    """The added tokens of a vocabulary, from the files in its folder, as transformers 5 finds them.

    That is `added_tokens_decoder` in tokenizer_config.json or, if it has none, added_tokens.json and tokenizer.json;
    for a generic class, tokenizer.json and `added_tokens_decoder`. Special tokens that are listed without an id are
    pieces. BERT's own special tokens are left out: in texts they are words.

    Args:
        path: the file of the pieces.
        pieces: the pieces.

    Raises:
        UserError: a file is broken.
    """
    folder = files.parent(path)
    config = read_if_there(files.join(folder, TOKENIZER_CONFIG))
    decoder, is_generic = config.get("added_tokens_decoder"), config.get("tokenizer_class") in GENERIC
    found: dict[str, AddedToken] = {}

    def add(name: str, items: Callable[[], Iterable[tuple[Any, Any]]]) -> None:
        try:
            tokens = [added_token(index, fields) for index, fields in items()]
        except (AttributeError, KeyError, TypeError, ValueError):
            file = files.join(folder, name)
            raise UserError(f"{file}: needs added_tokens with a content and an id each. Received: others.") from None
        found.update({token.content: token for token in tokens})

    names = _special_names(config)
    if decoder is None:
        names |= _special_names(read_if_there(files.join(folder, SPECIAL_TOKENS_MAP)))
        ids = read_if_there(files.join(folder, ADDED_TOKENS))
        add(ADDED_TOKENS, lambda: ((ids[token], {"content": token, "special": token in names}) for token in ids))
    if decoder is None or is_generic:
        listed = read_if_there(files.join(folder, TOKENIZER)).get("added_tokens") or []
        add(TOKENIZER, lambda: ((fields["id"], fields) for fields in listed))
    add(TOKENIZER_CONFIG, lambda: (decoder or {}).items())
    rows = {piece: row for row, piece in enumerate(pieces)}
    for name in names & rows.keys() - found.keys():
        found[name] = added_token(rows[name], {"content": name, "special": True})
    return [token for token in found.values() if token.content not in SPECIAL_TOKENS or token.content not in rows]


def read_if_there(path: str) -> Mapping[str, Any]:
    """The object in a JSON file; empty without the file."""
    return settings.read_json(path) if files.is_file(path) else {}


def _special_names(values: Mapping[str, Any]) -> set[str]:
    """The special tokens besides BERT's own that tokenizer_config.json or special_tokens_map.json lists."""
    listed = values.get("extra_special_tokens") or values.get("additional_special_tokens") or []
    if isinstance(listed, dict):
        listed = listed.values()
    return {each["content"] if isinstance(each, dict) else each for each in listed}
