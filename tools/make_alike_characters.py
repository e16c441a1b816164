"""Makes keras_bert/tasks/noise/alike_characters.txt from the Unicode Han Database (UAX #38).

    python tools/make_alike_characters.py FOLDER

FOLDER holds Unihan_DictionaryLikeData.txt, Unihan_IRGSources.txt and Unihan_Readings.txt, plain or as .bz2; Debian's
package unicode-data has them in /usr/share/unicode.

Two characters look alike if they have the same four-corner code (its first four digits, which describe the shapes in
the corners) or the same phonetic class (kPhonetic, mostly a component that they share), and their numbers of strokes
differ by one at most. Two characters sound alike if their reading is the same, tone included (kMandarin). Only common
characters count: the first level of GB 2312 and, among themselves, those of Big5's first level that GB 2312 lacks.
"""

import bz2
import collections
import os
import sys

TARGET = "keras_bert/tasks/noise/alike_characters.txt"
_MOST = 6  # Characters that look like one.

Field = dict[str, list[str]]


def main(folder: str) -> None:
    fields = {
        name: _field(folder, f"Unihan_{file}.txt", name)
        for name, file in (
            ("kFourCornerCode", "DictionaryLikeData"),
            ("kPhonetic", "DictionaryLikeData"),
            ("kTotalStrokes", "IRGSources"),
            ("kMandarin", "Readings"),
        )
    }
    simplified = [_decoded("gb2312", row, cell) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF)]
    traditional = [
        _decoded("big5", row, cell)
        for row in range(0xA4, 0xC7)
        for cell in (*range(0x40, 0x7F), *range(0xA1, 0xFF))
        if (row, cell) <= (0xC6, 0x7E)
    ]
    lines = []
    for characters in (simplified, [char for char in traditional if not _is_in_gb2312(char)]):
        common = [char for char in characters if char]
        lines += _look_alikes(common, fields) + _sound_alikes(common, fields["kMandarin"])
    with open(TARGET, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(sorted(lines))
    print(f"Written: {TARGET}, {len(lines):,} lines.")


def _look_alikes(characters: list[str], fields: dict[str, Field]) -> list[str]:
    """A line for each character: those that look like it, the nearest in strokes first."""
    groups = collections.defaultdict(list)
    for char in characters:
        for group in _groups(char, fields):
            groups[group].append(char)
    lines, order = [], {char: index for index, char in enumerate(characters)}
    for char in characters:
        alike: dict[str, int] = {}
        for group in _groups(char, fields):
            for other in groups[group]:
                distance = abs(_strokes(char, fields) - _strokes(other, fields))
                if other != char and distance <= 1:
                    alike[other] = distance
        if alike:
            nearest = sorted(alike, key=lambda other: (alike[other], order[other]))[:_MOST]
            lines.append(f"shape\t{char}\t{''.join(nearest)}\n")
    return lines


def _groups(char: str, fields: dict[str, Field]) -> set[str]:
    corners = {f"corners {code[:4]}" for code in fields["kFourCornerCode"].get(char, [])}
    # A star marks a character that does not belong to its class by shape.
    return corners | {f"class {code}" for code in fields["kPhonetic"].get(char, []) if not code.endswith("*")}


def _strokes(char: str, fields: dict[str, Field]) -> int:
    return int(fields["kTotalStrokes"][char][0])


def _sound_alikes(characters: list[str], readings: Field) -> list[str]:
    """A line for each reading that several characters have."""
    groups = collections.defaultdict(list)
    for char in characters:
        groups[readings[char][0]].append(char)
    return [f"sound\t{reading}\t{''.join(group)}\n" for reading, group in groups.items() if len(group) > 1]


def _field(folder: str, file: str, name: str) -> Field:
    path, found = os.path.join(folder, file), {}
    opened = open(path, encoding="utf-8") if os.path.exists(path) else bz2.open(f"{path}.bz2", "rt", encoding="utf-8")
    with opened as lines:
        for line in lines:
            code, _, rest = line.rstrip("\n").partition("\t")
            key, _, value = rest.partition("\t")
            if code.startswith("U+") and key == name:
                found[chr(int(code[2:], 16))] = value.split()
    return found


def _decoded(encoding: str, *code: int) -> str:
    return bytes(code).decode(encoding, errors="ignore")


def _is_in_gb2312(char: str) -> bool:
    return bool(char.encode("gb2312", errors="ignore"))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(sys.argv[1])
