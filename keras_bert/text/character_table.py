"""What BERT's basic tokenization does to every Unicode code point, as one table.

Google's BasicTokenizer (tokenization.py) handles each character on its own, except for the final sigma and the order of
combining marks. So a table of the output character and a few properties for every code point replaces it, and the graph
needs one look-up where Python needs `unicodedata`.

`python tools/make_character_table.py` builds the table from Python's `unicodedata`. It is shipped as data, so that ids
do not depend on the version of Python. `standalone_tokenizer.py`, which must stand alone, says what an entry holds.
"""

import dataclasses
import os

import numpy as np
import numpy.typing as npt

from keras_bert.text.standalone_tokenizer import FILE, IDEOGRAPH, KIND_MASK, LETTER, stored_prefix

CODE_POINTS = 0x110000
PAGE_SIZE = 256
ALBERT_FILE = os.path.join(os.path.dirname(FILE), "albert_table.npz")

# (lower_case, strip_accents): BERT's own two, and the other two that Hugging Face's tokenizer supports.
SETTINGS = ((False, False), (True, True), (True, False), (False, True))

IDEOGRAPH_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


@dataclasses.dataclass
class CharacterTable:
    """The packed properties of every code point; equal pages are stored once.

    The entry of a code point is `pages[page_starts[code_point >> 8] + (code_point & 255)] + (code_point << 11)`,
    in wrapping int32: pages hold the *distance* to the output character, which makes most of them equal.

    Attributes:
        page_starts: int32 `[4352]`.
        pages: int32 `[pages * 256]`.
        expansions: int32, the packed characters of every code point that becomes several, concatenated.
        expansion_splits: int32; expansion `i` is `expansions[expansion_splits[i] : expansion_splits[i + 1]]`.
    """

    page_starts: npt.NDArray[np.int32]
    pages: npt.NDArray[np.int32]
    expansions: npt.NDArray[np.int32]
    expansion_splits: npt.NDArray[np.int32]


def load_character_table(
    lower_case: bool, strip_accents: bool | None = None, split_chinese: bool = True
) -> CharacterTable:
    """The table for these settings of a `WordPieceTokenizer`."""
    prefix = stored_prefix(lower_case, strip_accents)
    with np.load(FILE, allow_pickle=False) as arrays:
        table = CharacterTable(*(arrays[prefix + field.name] for field in dataclasses.fields(CharacterTable)))
    if split_chinese:
        return table
    # A distance has the lowest bits of its entry, so both arrays are changed in the same way.
    return dataclasses.replace(table, pages=_as_letters(table.pages), expansions=_as_letters(table.expansions))


def load_albert_table(lower_case: bool) -> CharacterTable:
    """The table of ALBERT's normalization: NFKD without combining marks, then lower case or not."""
    prefix = albert_prefix(lower_case)
    with np.load(ALBERT_FILE, allow_pickle=False) as arrays:
        return CharacterTable(*(arrays[prefix + field.name] for field in dataclasses.fields(CharacterTable)))


def _as_letters(packed: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Turns ideographs into letters."""
    return np.where(packed & KIND_MASK == IDEOGRAPH, packed - (IDEOGRAPH - LETTER), packed)


def recorded_unicode_version() -> str:
    """The version of Unicode that the shipped table was built from."""
    with np.load(FILE, allow_pickle=False) as arrays:
        return str(arrays["unicode_version"])


def albert_prefix(lower_case: bool) -> str:
    """What the names of a setting's arrays start with in ALBERT's file."""
    return "uncased_" if lower_case else "cased_"
