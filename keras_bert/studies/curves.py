"""Where a curve over a run reaches a goal."""

from collections.abc import Iterable


def crossing(points: Iterable[tuple[float, float]], goal: float) -> float | None:
    """The place at which a curve first reaches a goal, linearly between two points and from (0, 0); None if it never
    does.

    Args:
        points: `[(place, value)]`, places ascending.
        goal: a value above 0.
    """
    before = (0.0, 0.0)
    for place, value in points:
        if value >= goal:
            return before[0] + (goal - before[1]) / (value - before[1]) * (place - before[0])
        before = (place, value)
    return None
