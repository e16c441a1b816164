"""Draws a few examples of each class."""

import bisect
import collections
from collections.abc import Iterable

from keras_bert.data.corpus.held_out import text_hash
from keras_bert.tasks.classification.data import ExampleRow


def draw_shots(rows: Iterable[ExampleRow], shots: int, seed: int) -> list[ExampleRow]:
    """Draw at most `shots` examples of each class, in the file's order: those with the smallest hashes.

    The hash is of the seed and the texts, so the draw does not depend on the file's order. Of equal texts in a class,
    only the first is drawn.
    """
    smallest: dict[object, list[tuple[int, int, ExampleRow]]] = collections.defaultdict(list)
    for position, row in enumerate(rows):
        of_class, value = smallest[row.label], text_hash("\0".join([str(seed), *row.texts]))
        place = bisect.bisect_left(of_class, (value,))
        is_new = place == len(of_class) or of_class[place][0] != value
        if is_new and place < shots:
            of_class.insert(place, (value, position, row))
            del of_class[shots:]
    chosen = sorted((position, row) for of_class in smallest.values() for _, position, row in of_class)
    return [row for _, row in chosen]
