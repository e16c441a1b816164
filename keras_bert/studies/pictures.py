"""Pictures that several studies draw."""

from collections.abc import Iterable, Mapping, Sequence

from keras_bert.core.drawing import PAGE, TITLE, new_figure, plain, png, set_logarithmic, tidy

Curves = Mapping[str, Sequence[tuple[float, float]]]  # {name: [(x, y)]}

_TELLABLE = 10  # Colours of matplotlib's cycle; further curves get another stroke.
_BESIDE = 6  # Names in a line of the legend.
_STROKES = ("-", "--", ":", "-.")


def curves_picture(
    panels: Mapping[str, Curves],
    across: str,
    up: str,
    title: str = "",
    is_logarithmic: bool = False,
    limits: tuple[float | None, float | None] = (None, None),
) -> bytes:
    """PNG of curves, one panel beside the other.

    Args:
        panels: `{title: curves}`. A name has the same colour in all panels.
        across: what the x axis shows.
        up: what the y axes show.
        title: the title.
        is_logarithmic: whether the x axis is.
        limits: the least and greatest y, None for those of the curves.
    """
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    lines = -(-len(names) // _BESIDE)
    figure = new_figure(PAGE, 3.6 + 0.2 * lines)
    for number, (axes, (heading, curves)) in enumerate(
        zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items())
    ):
        for name, points in curves.items():
            index = names.index(name)
            style = {"color": f"C{index % _TELLABLE}", "linestyle": _STROKES[index // _TELLABLE % len(_STROKES)]}
            axes.plot(*zip(*points), marker="." if len(points) < 50 else None, label=plain(name), **style)
        axes.set(xlabel=across, ylabel="" if number else up, title=plain(heading), ylim=limits)
        if is_logarithmic:
            set_logarithmic(axes)
        tidy(axes)
    handles = {label: line for axes in figure.axes for line, label in zip(*axes.get_legend_handles_labels())}
    where = {"loc": "outside lower center", "ncols": min(len(names), _BESIDE)}
    figure.legend(handles.values(), handles, frameon=False, fontsize="small", **where)
    figure.suptitle(plain(title, TITLE))
    return png(figure)


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
