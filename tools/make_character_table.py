"""Builds character_table.npz, albert_table.npz and character_classes.npz in keras_bert/text from this `unicodedata`.

python tools/make_character_table.py
"""

import io
import os
import sys
import unicodedata
import zipfile
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from keras_bert.text import standalone_byte_tokenizer as classes
from keras_bert.text.characters import ALBERT_FILE, CODE_POINTS, PAGE_SIZE, SETTINGS, CharacterTable, albert_prefix
from keras_bert.text.marks import IDEOGRAPH_RANGES
from keras_bert.text.standalone_tokenizer import (
    BOUNDARY_MARK,
    CASE_IGNORABLE,
    CASED,
    CHARACTER_SHIFT,
    DELETED,
    EXPANDS,
    FILE,
    IDEOGRAPH,
    LETTER,
    ORDER_MASK,
    PUNCTUATION,
    SIGMA,
    SPACE,
    UNCASED,
    pack,
    stored_prefix,
    strips,
)


def build_character_table(lower_case: bool, strip_accents: bool | None = None) -> CharacterTable:
    """Builds the table from this Python's `unicodedata` (about 3 seconds)."""
    strips_accents = strips(lower_case, strip_accents)
    orders = sorted({unicodedata.combining(chr(code_point)) for code_point in range(CODE_POINTS)})
    order_of = {combining_class: order for order, combining_class in enumerate(orders)}
    assert len(order_of) <= ORDER_MASK + 1
    entries = np.zeros(CODE_POINTS, np.int64)
    expansions: list[int] = []
    expansion_splits = [0]
    for code_point in range(CODE_POINTS):
        character = chr(code_point)
        casing = _casing(character) if lower_case else UNCASED
        outputs = _outputs(character, lower_case, strips_accents)
        if character == "Σ" and lower_case:
            entry = pack(ord("σ"), SIGMA, casing=casing)
        elif not outputs:
            entry = pack(0, DELETED, casing=casing)
        elif len(outputs) == 1 and (not strips_accents or unicodedata.combining(outputs[0][0]) == 0):
            entry = pack(ord(outputs[0][0]), outputs[0][1], casing=casing)
        else:
            entry = pack(len(expansion_splits) - 1, EXPANDS, casing=casing)
            # Marks are reordered only if accents are stripped.
            classes = [unicodedata.combining(output) if strips_accents else 0 for output, _ in outputs]
            expansions += [pack(ord(output), kind, order_of[c]) for (output, kind), c in zip(outputs, classes)]
            expansion_splits.append(len(expansions))
        entries[code_point] = entry
    return _table(entries, expansions, expansion_splits)


def build_albert_table(lower_case: bool) -> CharacterTable:
    """Builds the table of ALBERT's normalization: NFKD, without combining marks, lower case (about 3 seconds).

    The final sigma depends on NFKD's output, so casings belong to the characters of an expansion.
    """
    entries = np.zeros(CODE_POINTS, np.int64)
    expansions: list[int] = []
    expansion_splits = [0]
    for code_point in range(CODE_POINTS):
        decomposed = unicodedata.normalize("NFKD", chr(code_point))
        outputs = [_albert_entry(output, lower_case) for output in decomposed if not unicodedata.combining(output)]
        if chr(code_point).isspace():
            entries[code_point] = pack(ord(" "), SPACE)
        elif not outputs or 0xD800 <= code_point < 0xE000:  # No text has surrogates.
            entries[code_point] = pack(0, DELETED)
        elif len(outputs) == 1:
            entries[code_point] = outputs[0]
        else:
            entries[code_point] = pack(len(expansion_splits) - 1, EXPANDS)
            expansions += outputs
            expansion_splits.append(len(expansions))
    return _table(entries, expansions, expansion_splits)


def _albert_entry(character: str, lower_case: bool) -> int:
    if not lower_case:
        return pack(ord(character), LETTER)
    if character == "Σ":
        return pack(ord("σ"), SIGMA, casing=_casing(character))
    return pack(ord(character.lower()), LETTER, casing=_casing(character))


def _table(entries: npt.NDArray[np.int64], expansions: list[int], expansion_splits: list[int]) -> CharacterTable:
    distances = _int32(entries - (np.arange(CODE_POINTS) << CHARACTER_SHIFT)).reshape(-1, PAGE_SIZE)
    pages, page_of = np.unique(distances, axis=0, return_inverse=True)
    page_starts = page_of.reshape(-1).astype(np.int32) * PAGE_SIZE
    return CharacterTable(page_starts, pages.reshape(-1), _int32(expansions), np.asarray(expansion_splits, np.int32))


def save_character_tables(path: str) -> None:
    """Writes the tables for all `SETTINGS`; equal arrays give equal bytes."""
    arrays = {}
    for lower_case, strip_accents in SETTINGS:
        for name, array in vars(build_character_table(lower_case, strip_accents)).items():
            arrays[stored_prefix(lower_case, strip_accents) + name] = array
    _save(path, arrays)


def save_albert_tables(path: str) -> None:
    """Writes the tables of ALBERT's normalization; equal arrays give equal bytes."""
    arrays = {}
    for lower_case in (False, True):
        for name, array in vars(build_albert_table(lower_case)).items():
            arrays[albert_prefix(lower_case) + name] = array
    _save(path, arrays)


def build_character_classes() -> dict[str, npt.NDArray[np.generic]]:
    """`page_starts` and `pages` of the classes by which byte-level BPE splits texts."""
    found = np.array([_class_of(chr(code_point)) for code_point in range(CODE_POINTS)], np.uint8)
    pages, page_of = np.unique(found.reshape(-1, PAGE_SIZE), axis=0, return_inverse=True)
    return {"page_starts": page_of.reshape(-1).astype(np.uint16) * PAGE_SIZE, "pages": pages.reshape(-1)}


def _class_of(character: str) -> int:
    category = unicodedata.category(character)[0]
    if category == "Z" or character in "\t\n\v\f\r\x85":
        return classes.SPACE
    return {"L": classes.LETTER, "N": classes.NUMBER}.get(category, classes.OTHER)


def save_character_classes(path: str) -> None:
    """Writes the classes; equal arrays give equal bytes."""
    _save(path, build_character_classes())


def _save(path: str, arrays: dict[str, np.ndarray]) -> None:
    arrays = {"unicode_version": np.array(unicodedata.unidata_version), **arrays}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            # With a fixed date; np.savez would write the current one.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), zipfile.ZIP_DEFLATED)


def _int32(values: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    return np.asarray(values, np.int64).astype(np.uint32).view(np.int32)


def _outputs(character: str, lower_case: bool, strips_accents: bool) -> list[tuple[str, int]]:
    """The characters that `character` becomes, each with its kind, before combining marks are sorted."""
    if _is_deleted(character):
        return []
    if _is_space(character):
        return [(" ", SPACE)]
    lowered = character.lower() if lower_case else character
    if not strips_accents:
        return [(output, _kind(character, output)) for output in lowered]
    outputs = []
    for output in unicodedata.normalize("NFD", lowered):
        if unicodedata.category(output) != "Mn":
            outputs.append((output, _kind(character, output)))
        elif unicodedata.combining(output) == 0:
            outputs.append((output, BOUNDARY_MARK))
    return outputs


def _kind(character: str, output: str) -> int:
    """The kind: the original splits off ideographs before lower-casing and stripping accents, punctuation after."""
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
    for save, file in (
        (save_character_tables, FILE),
        (save_albert_tables, ALBERT_FILE),
        (save_character_classes, classes.FILE),
    ):
        save(file)
        print(f"Wrote {file}: Unicode {unicodedata.unidata_version}, {os.path.getsize(file):,} bytes.")
