"""A vocabulary that a command is given, and whether texts are lower-cased for it."""

import unicodedata

from keras_bert import files, settings
from keras_bert.checkpoints.hub_name import is_hub_name
from keras_bert.checkpoints.model_folder import open_model_folder, vocabulary_path
from keras_bert.checkpoints.tokenizer_settings import TOKENIZER_CONFIG, first_capital
from keras_bert.errors import UserError
from keras_bert.files import StrPath
from keras_bert.text.vocabulary import Vocabulary


def given_vocabulary(path: StrPath, lower_case: bool | None) -> tuple[Vocabulary, bool]:
    """`(the vocabulary, whether texts are lower-cased for it)`.

    Args:
        path: its file or `hf:NAME`.
        lower_case: what the user says; None for what its folder says or, without a folder, what its pieces suggest.

    Raises:
        UserError: there is no such vocabulary, or it is for texts of the other casing.
    """
    vocabulary = Vocabulary.from_file(vocabulary_path(path))
    stated = _stated(path)
    found = first_capital(vocabulary.tokens) is None if stated is None else stated
    if lower_case is None or lower_case == found:
        return vocabulary, found
    if stated is None and found and not _is_uncased(vocabulary):
        return vocabulary, lower_case
    given, needed, other = ("--uncased", "an uncased", "cased") if lower_case else ("--cased", "a cased", "uncased")
    raise UserError(
        f"{given}: needs {needed} vocabulary. Received: {path}, which is {other}. Leave {given} out, or give another "
        "vocabulary."
    )


def _stated(path: StrPath) -> bool | None:
    """Whether the folder of a vocabulary lower-cases; None if it does not say."""
    if is_hub_name(path):
        return open_model_folder(path).tokenizer.lower_case
    beside = files.join(files.parent(path), TOKENIZER_CONFIG)
    said = settings.read_json(beside).get("do_lower_case") if files.is_file(beside) else None
    return None if said is None else bool(said)


def _is_uncased(vocabulary: Vocabulary) -> bool:
    """Whether no piece has a capital or an accent, but some could have."""
    letters = "".join(token for token in vocabulary.tokens if token.strip("#▁").isalpha())
    has_accents = any(unicodedata.category(point) == "Mn" for point in unicodedata.normalize("NFD", letters))
    return letters == letters.lower() != letters.upper() and not has_accents
