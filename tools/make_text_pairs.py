"""Makes pairs of texts to try `finetune --task seq2seq` with, as TSV with the columns text and target.

    python tools/make_text_pairs.py typos plain/*.txt --noise typo=0.2 --noise nospace=0.3 --output typos.tsv
    python tools/make_text_pairs.py titles enwiki/*.gz --output titles.tsv

`typos` gives every line of plain text with one of the kinds of noise, in turn, as the text, and the line itself as the
target. `titles` gives the first paragraph of every article that WikiExtractor wrote as the text, and its title as the
target. Every twentieth pair goes to a second file, whose name ends in -dev.
"""

import argparse
import csv
import html
import os
import re
import sys
from collections.abc import Iterable, Iterator

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from keras_bert.data.corpus.text_lines import read_whole_lines
from keras_bert.tasks.noise import Noise

_TITLE = re.compile(r'<doc .*title="(.*)">')
_DEV = 20


def typos(paths: Iterable[str], kinds: list[str], longest: int) -> Iterator[tuple[str, str]]:
    """Yields (a line with noise, the line) of the lines of at most `longest` characters."""
    noises = [Noise(kind, seed) for seed, kind in enumerate(kinds)]
    lines = (line.strip() for path in paths for line in read_whole_lines(path))
    for number, line in enumerate(line for line in lines if 20 <= len(line) <= longest):
        yield noises[number % len(noises)](line), line


def titles(paths: Iterable[str], longest: int) -> Iterator[tuple[str, str]]:
    """Yields (the first paragraph, the title) of the articles whose paragraph is longer than the title."""
    for path in paths:
        title, is_next = "", False
        for line in read_whole_lines(path):
            if found := _TITLE.match(line):
                title, is_next = html.unescape(found[1]), False
            elif line.strip() == title:
                is_next = True
            elif is_next and line.strip():
                is_next = False
                if len(line.strip()) > 2 * len(title):
                    yield line.strip()[:longest], title


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("typos", "titles"))
    parser.add_argument("paths", nargs="+", metavar="FILE")
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--noise", action="append", metavar="KIND[=SHARE]", help="for typos; by default nospace")
    parser.add_argument("--longest", type=int, default=300, help="the most characters of a text; default 300")
    options = parser.parse_args()
    pairs = titles(options.paths, options.longest)
    if options.kind == "typos":
        pairs = typos(options.paths, options.noise or ["nospace"], options.longest)
    base, ending = os.path.splitext(options.output)
    paths = (options.output, f"{base}-dev{ending}")
    os.makedirs(os.path.dirname(options.output) or ".", exist_ok=True)
    with open(paths[0], "w", encoding="utf-8", newline="") as train, open(paths[1], "w", encoding="utf-8") as dev:
        # All cells are quoted, for a table whose first quote comes late would be read as one without quoting.
        form = {"delimiter": "\t", "lineterminator": "\n", "quoting": csv.QUOTE_ALL}
        writers = [csv.writer(stream, **form) for stream in (train, dev)]
        counts = [0, 0]
        for writer in writers:
            writer.writerow(("text", "target"))
        for number, pair in enumerate(pairs):
            side = number % _DEV == _DEV - 1
            writers[side].writerow(pair)
            counts[side] += 1
    print(f"{paths[0]}: {counts[0]:,} pairs; {paths[1]}: {counts[1]:,}")


if __name__ == "__main__":
    main()
