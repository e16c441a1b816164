"""Tables of Markdown, and figures over several seeds."""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence


def rows_of_markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table of strings."""
    yield f"| {' | '.join(header)} |"
    yield "|" + " --- |" * len(header)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def median_and_range(values: Sequence[float], shown: Callable[[float], str]) -> str:
    """`median (least–greatest)`, each by the function `shown`; the one value where there is no range."""
    median = shown(statistics.median(values))
    return median if len(values) == 1 else f"{median} ({shown(min(values))}–{shown(max(values))})"
