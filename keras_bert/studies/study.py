"""The base of every study: parts that are made once, and a page with tables and pictures."""

from __future__ import annotations

import dataclasses
import logging
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from keras_bert.core import files, settings, whole_files
from keras_bert.core.drawing import PAGE, TITLE, new_figure, plain, png, set_logarithmic, tidy
from keras_bert.core.errors import UserError
from keras_bert.core.terminal_bar import terminal_bar
from keras_bert.core.yaml_and_json import read_json
from keras_bert.tasks.finetuning.pictures import write_pictures
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.run_loggers import add_to_tensorboard

_log = logging.getLogger(__name__)


def require_same(path: str, before: Mapping[str, Any], now: Mapping[str, Any], remedy: str) -> None:
    """Raises `UserError` if what the part `path` was made from, `before`, differs from `now`."""
    if changes := settings.differences(before, now):
        shown = "; ".join(f"{key}: was {old!r}, now {new!r}" for key, old, new in changes)
        raise UserError(f"{path}: was made with other settings ({shown}). {remedy}")


_Key = TypeVar("_Key")
_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True)
class Findings:
    """The results of a study.

    Attributes:
        title: the heading of its page.
        lines: Markdown, such as tables.
        pictures: `{name: PNG}`, which the page shows below the lines.
        pages: names of pages that `StudyFolder.write_page` wrote, to which it links.
    """

    title: str
    lines: Sequence[str]
    pictures: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    pages: Sequence[str] = ()


class StudyFolder:
    """The folder of one study: its runs, the results of its parts in `parts/`, and what it found.

    A context manager that holds the folder's lock.
    """

    def __init__(self, path: str):
        self.path = path
        self._run = RunFolder(path)

    def __enter__(self) -> StudyFolder:
        self._run.hold()
        return self

    def __exit__(self, *error: object) -> None:
        self._run.release()

    def join(self, *names: str) -> str:
        """A path in the folder."""
        return files.join(self.path, *names)

    def made(
        self, parts: Mapping[_Key, Callable[[], _Result]], what: str = "Parts", label: str = "{}"
    ) -> dict[_Key, _Result]:
        """Makes each part in turn, with a progress bar, and returns `{key: result}`.

        Args:
            parts: `{key: function}`; the functions never repeat work: those of `kept`, or runs that resume.
            what: the first words of the bar, such as "Fine-tuned".
            label: the name of a part in the log, with places for its key or for the items of a key that is a tuple.
        """
        results = {}
        with terminal_bar(what, "parts", total=len(parts)) as bar:
            for key, make in parts.items():
                bar.clear()
                _log.info(label.format(*key if isinstance(key, tuple) else (key,)))
                bar.refresh()
                results[key] = make()
                bar.update()
        return results

    def kept(self, name: str, about: Mapping[str, Any], make: Callable[[], _Result]) -> Callable[[], _Result]:
        """A function that makes a part and stores its result, or reads it if it is finished.

        Args:
            name: the name of the part's file in `parts/`.
            about: JSON values that the result depends on.
            make: function () -> the result, a JSON value.

        Raises:
            UserError: from that function: the stored part depends on other values, or lacks the result.
        """
        path = self.join("parts", f"{name}.json")

        def made_or_read() -> _Result:
            if files.exists(path):
                part = read_json(path)
                if "result" not in part:
                    raise UserError(f"{path}: needs the result of a part. Received: none. Remove this file.")
                require_same(path, part.get("about", {}), about, "Give another --output, or remove this file.")
                return part["result"]
            result = make()
            files.make_folder(files.parent(path))
            whole_files.write_json(path, {"about": about, "result": result})
            return result

        return made_or_read

    def write_page(self, name: str, content: str) -> None:
        """Writes the self-contained page `name`.html at once, because pages may be large and many."""
        whole_files.write_file(self.join(f"{name}.html"), content)

    def write(self, name: str, findings: Findings, command: str | None = None) -> str:
        """Writes the page `name`.md with its pictures, which TensorBoard shows too; returns the path of the page.

        Args:
            command: the command line that the page quotes; None if unknown.
        """
        lines = [f"# {findings.title}", ""]
        if command:
            lines += ["```", command, "```", ""]
        lines += findings.lines
        for page in findings.pages:
            lines += ["", f"[{page}.html]({page}.html)"]
        write_pictures(self._run, findings.pictures)
        add_to_tensorboard(self._run, 0, findings.pictures)
        for picture in findings.pictures:
            lines += ["", f"![{picture}]({picture}.png)"]
        path = self.join(f"{name}.md")
        whole_files.write_file(path, "\n".join(lines) + "\n")
        return path


def rows_of_markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table as lines of Markdown."""
    yield f"| {' | '.join(header)} |"
    yield "|" + " --- |" * len(header)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def cell(value: float | None, form: str = "{:.1f}") -> str:
    """A number of a table; a dash for a missing one."""
    return "–" if value is None else form.format(value)


def median_and_range(values: Sequence[float], shown: Callable[[float], str]) -> str:
    """`median (least–greatest)`, each formatted by `shown`; a single value has no range."""
    median = shown(statistics.median(values))
    return median if len(values) == 1 else f"{median} ({shown(min(values))}–{shown(max(values))})"


Curves = Mapping[str, Sequence[tuple[float, float]]]  # {name: [(x, y)]}

_TELLABLE = 10  # The colours of matplotlib's cycle; further curves get another stroke.
_HANDLE, _LETTER = 0.55, 0.07  # Inches in a line of the legend, for a curve's sample and for a letter of its name.
_STROKES = ("-", "--", ":", "-.")


def curves_picture(
    panels: Mapping[str, Curves],
    across: str,
    up: str,
    title: str = "",
    is_logarithmic: bool = False,
    limits: tuple[float | None, float | None] = (None, None),
) -> bytes:
    """PNG of curves, with the panels side by side.

    Args:
        panels: `{title: curves}`. A name has the same colour in all panels.
        limits: the least and greatest y, None for those of the curves.
    """
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    labels = {name: plain(name, TITLE) for name in names}
    beside = max(1, min(len(names), int(PAGE / (_HANDLE + _LETTER * max(map(len, labels.values()), default=0)))))
    handles: dict[str, Any] = {}
    figure = new_figure(PAGE, 3.6 + 0.2 * -(-len(names) // beside))
    for number, (axes, (heading, curves)) in enumerate(
        zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items())
    ):
        for name, points in curves.items():
            index = names.index(name)
            style = {"color": f"C{index % _TELLABLE}", "linestyle": _STROKES[index // _TELLABLE % len(_STROKES)]}
            for line in axes.plot(*zip(*points), marker="." if len(points) < 50 else None, **style):
                handles[name] = line
        axes.set(xlabel=across, ylabel="" if number else up, title=plain(heading), ylim=limits)
        if is_logarithmic:
            set_logarithmic(axes)
        tidy(axes)
    shown = [labels[name] for name in handles]
    where = {"loc": "outside lower center", "ncols": beside}
    figure.legend(handles.values(), shown, frameon=False, fontsize="small", **where)
    figure.suptitle(plain(title, TITLE))
    return png(figure)


def crossing(points: Iterable[tuple[float, float]], goal: float) -> float | None:
    """Where a curve first reaches a goal, interpolated linearly, from (0, 0) to the first point too; None if never.

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
