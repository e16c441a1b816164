"""What BERT's basic tokenization does to every Unicode code point, as one table.

Google's BasicTokenizer (tokenization.py) handles each character on its own, except for the final sigma and the order of
combining marks. So a table of the output character and a few properties for every code point replaces it, and the graph
needs one look-up where Python needs `unicodedata`.

The table is built from Python's `unicodedata` and shipped as data, so that ids do not depend on the version of Python.
`python -m keras_bert.text.character_table` rebuilds it.
"""

import dataclasses
import io
import os
import unicodedata
import zipfile
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

CODE_POINTS = 0x110000
PAGE_SIZE = 256
FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "character_table.npz")

# Kinds of characters. The order matters: up to BOUNDARY_MARK they are deleted, up to SPACE they belong to no word,
# from PUNCTUATION each is a word of its own, and from SIGMA the look-up alone is not enough.
DELETED = 0  # control characters, NUL, U+FFFD, stripped accents
BOUNDARY_MARK = 1  # a stripped mark of combining class 0: deleted, but combining marks do not move across it
SPACE = 2
LETTER = 3  # anything that words consist of, including digits and symbols
PUNCTUATION = 4
IDEOGRAPH = 5
SIGMA = 6  # capital sigma, whose lower case depends on its neighbors
EXPANDS = 7  # its character field is an index into `expansions`

# (lower_case, strip_accents): BERT's own two, and the other two that Hugging Face's tokenizer supports.
SETTINGS = ((False, False), (True, True), (True, False), (False, True))

# Properties of a character for the final-sigma rule.
UNCASED, CASED, CASE_IGNORABLE = 0, 1, 2

# One int32 holds, from its lowest bit: kind (3 bits), order (6), casing (2), character (21).
KIND_MASK = 0x7
ORDER_SHIFT, ORDER_MASK = 3, 0x3F
CASING_SHIFT, CASING_MASK = 9, 0x3
CHARACTER_SHIFT, CHARACTER_MASK = 11, 0x1FFFFF

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


def pack(character: int, kind: int, order: int = 0, casing: int = UNCASED) -> int:
    """A table entry; `character` is a code point or, for EXPANDS, an index."""
    return character << CHARACTER_SHIFT | casing << CASING_SHIFT | order << ORDER_SHIFT | kind


def load_character_table(
    lower_case: bool, strip_accents: bool | None = None, split_chinese: bool = True
) -> CharacterTable:
    """The table for these settings of a `WordPieceTokenizer`."""
    prefix = _prefix(lower_case, strip_accents)
    with np.load(FILE, allow_pickle=False) as arrays:
        table = CharacterTable(*(arrays[prefix + field.name] for field in dataclasses.fields(CharacterTable)))
    if split_chinese:
        return table
    # A distance has the lowest bits of its entry, so both arrays are changed in the same way.
    return dataclasses.replace(table, pages=_as_letters(table.pages), expansions=_as_letters(table.expansions))


def _as_letters(packed: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Turns ideographs into letters."""
    return np.where(packed & KIND_MASK == IDEOGRAPH, packed - (IDEOGRAPH - LETTER), packed)


def recorded_unicode_version() -> str:
    """The version of Unicode that the shipped table was built from."""
    with np.load(FILE, allow_pickle=False) as arrays:
        return str(arrays["unicode_version"])


def build_character_table(lower_case: bool, strip_accents: bool | None = None) -> CharacterTable:
    """Builds the table from this Python's `unicodedata` (about 3 seconds)."""
    strips = _strips(lower_case, strip_accents)
    orders = sorted({unicodedata.combining(chr(code_point)) for code_point in range(CODE_POINTS)})
    order_of = {combining_class: order for order, combining_class in enumerate(orders)}
    assert len(order_of) <= ORDER_MASK + 1
    entries = np.zeros(CODE_POINTS, np.int64)
    expansions: list[int] = []
    expansion_splits = [0]
    for code_point in range(CODE_POINTS):
        character = chr(code_point)
        casing = _casing(character) if lower_case else UNCASED
        outputs = _outputs(character, lower_case, strips)
        if character == "Σ" and lower_case:
            entry = pack(ord("σ"), SIGMA, casing=casing)
        elif not outputs:
            entry = pack(0, DELETED, casing=casing)
        elif len(outputs) == 1 and (not strips or unicodedata.combining(outputs[0][0]) == 0):
            entry = pack(ord(outputs[0][0]), outputs[0][1], casing=casing)
        else:
            entry = pack(len(expansion_splits) - 1, EXPANDS, casing=casing)
            # Marks are reordered only if accents are stripped.
            classes = [unicodedata.combining(output) if strips else 0 for output, _ in outputs]
            expansions += [pack(ord(output), kind, order_of[c]) for (output, kind), c in zip(outputs, classes)]
            expansion_splits.append(len(expansions))
        entries[code_point] = entry
    distances = _int32(entries - (np.arange(CODE_POINTS) << CHARACTER_SHIFT)).reshape(-1, PAGE_SIZE)
    pages, page_of = np.unique(distances, axis=0, return_inverse=True)
    page_starts = page_of.reshape(-1).astype(np.int32) * PAGE_SIZE
    return CharacterTable(page_starts, pages.reshape(-1), _int32(expansions), np.asarray(expansion_splits, np.int32))


def save_character_tables(path: str) -> None:
    """Writes the tables for all `SETTINGS`; equal arrays give equal bytes."""
    arrays = {"unicode_version": np.array(unicodedata.unidata_version)}
    for lower_case, strip_accents in SETTINGS:
        for name, array in vars(build_character_table(lower_case, strip_accents)).items():
            arrays[_prefix(lower_case, strip_accents) + name] = array
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            # With a fixed date; np.savez would write the current one.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), zipfile.ZIP_DEFLATED)


def _strips(lower_case: bool, strip_accents: bool | None) -> bool:
    return lower_case if strip_accents is None else strip_accents


def _prefix(lower_case: bool, strip_accents: bool | None) -> str:
    prefix = "uncased_" if lower_case else "cased_"
    other = _strips(lower_case, strip_accents) != lower_case
    return ("accented_" if lower_case else "stripped_") + prefix if other else prefix


def _int32(values: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    return np.asarray(values, np.int64).astype(np.uint32).view(np.int32)


def _outputs(character: str, lower_case: bool, strips: bool) -> list[tuple[str, int]]:
    """The characters that `character` becomes, each with its kind, before combining marks are sorted."""
    if _is_deleted(character):
        return []
    if _is_space(character):
        return [(" ", SPACE)]
    lowered = character.lower() if lower_case else character
    if not strips:
        return [(output, _kind(character, output)) for output in lowered]
    outputs = []
    for output in unicodedata.normalize("NFD", lowered):
        if unicodedata.category(output) != "Mn":
            outputs.append((output, _kind(character, output)))
        elif unicodedata.combining(output) == 0:
            outputs.append((output, BOUNDARY_MARK))
    return outputs


def _kind(character: str, output: str) -> int:
    """The original splits off ideographs before lower-casing and stripping accents, punctuation after."""
    if any(first <= ord(character) <= last for first, last in IDEOGRAPH_RANGES):
        return IDEOGRAPH
    return PUNCTUATION if _is_punctuation(output) else LETTER


def _is_deleted(character: str) -> bool:
    if character in "\t\n\r":
        return False
    return character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Cs")


def _is_space(character: str) -> bool:
    # isspace() adds the line and paragraph separators, at which Python's split() splits too.
    return unicodedata.category(character) == "Zs" or character.isspace()


def _is_punctuation(character: str) -> bool:
    # All ASCII except letters and digits, even what Unicode classifies as a symbol ($, +, ^, `).
    if character.isascii():
        return not character.isalnum()
    return unicodedata.category(character).startswith("P")


def _casing(character: str) -> int:
    """Determined by Python itself, the oracle: `str.lower` writes ς only after a cased letter."""
    if (character + "Σ").lower().endswith("ς"):
        return CASED
    return CASE_IGNORABLE if ("a" + character + "Σ").lower().endswith("ς") else UNCASED


if __name__ == "__main__":
    save_character_tables(FILE)
    print(f"Wrote {FILE}: Unicode {unicodedata.unidata_version}, {os.path.getsize(FILE):,} bytes.")
