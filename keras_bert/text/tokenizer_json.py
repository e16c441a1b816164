"""The pieces in Hugging Face's tokenizer.json, the only tokenizer file in many newer folders."""

from keras_bert import settings
from keras_bert.errors import UserError
from keras_bert.files import StrPath

CONTINUATION = "##"


def read_pieces(path: StrPath) -> list[str]:
    """The pieces in the order of their ids, including tokens that were added later.

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
    try:
        added = {item["content"]: item["id"] for item in content.get("added_tokens") or []}
    except (KeyError, TypeError):
        raise UserError(f"{path}: needs added_tokens with a content and an id each. Received: others.") from None
    odd = next((number for number in (*pieces.values(), *added.values()) if type(number) is not int), None)
    if odd is not None:
        raise UserError(f"{path}: needs whole numbers as ids. Received: {odd!r}.")
    piece_of = {number: piece for piece, number in {**pieces, **added}.items()}
    count = len({**pieces, **added})
    if sorted(piece_of) != list(range(count)):
        absent = next(number for number in range(count + 1) if number not in piece_of)
        raise UserError(
            f"{path}: needs one piece for every id. Received: {count} pieces, none of them with id {absent}."
        )
    return [piece_of[number] for number in range(count)]
