"""What every study shares: parts that are made once, and a page with tables and pictures."""

from __future__ import annotations

import dataclasses
import functools
import logging
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from keras_bert.core import files, settings, whole_files
from keras_bert.core.errors import UserError
from keras_bert.core.terminal_bar import terminal_bar
from keras_bert.training.run_folder import RunFolder

_log = logging.getLogger(__name__)


def require_same(path: str, before: Mapping[str, Any], now: Mapping[str, Any], remedy: str) -> None:
    """Raises `UserError` if the part `path` was made from something other than what is given now."""
    if changes := settings.differences(before, now):
        shown = "; ".join(f"{key}: {there!r} there, {here!r} now" for key, there, here in changes)
        raise UserError(f"{path}: was made otherwise ({shown}). {remedy}")


_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True)
class Findings:
    """What a study found.

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

    Args:
        path: the folder.
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

    def made(self, parts: Mapping[str, Callable[[], _Result]], what: str = "Parts") -> dict[str, _Result]:
        """Makes each part in turn, with a progress bar, and returns `{name: result}`.

        Args:
            parts: `{name: function}`, whose functions do nothing twice: those of `kept`, or runs that resume.
            what: what the parts are, the first words of the bar.
        """
        results = {}
        with terminal_bar(what, "parts", total=len(parts)) as bar:
            for name, make in parts.items():
                bar.clear()
                _log.info(name)
                bar.refresh()
                results[name] = make()
                bar.update()
        return results

    def kept(self, name: str, about: Mapping[str, Any], make: Callable[[], _Result]) -> Callable[[], _Result]:
        """A function that makes a part and stores its result, or reads it if it is finished.

        Args:
            name: of the part's file in `parts/`.
            about: JSON values that the result depends on.
            make: function () -> the result, a JSON value.

        Raises:
            UserError: from that function: the part was made from something else.
        """
        return functools.partial(self._kept, files.join(self.path, "parts", f"{name}.json"), dict(about), make)

    def _kept(self, path: str, about: dict[str, Any], make: Callable[[], _Result]) -> _Result:
        if files.exists(path):
            part = settings.read_json(path)
            require_same(path, part.get("about", {}), about, "Give another --output, or remove this file.")
            return part["result"]
        result = make()
        files.make_folder(files.parent(path))
        whole_files.write_json(path, {"about": about, "result": result})
        return result

    def write_page(self, name: str, content: str) -> None:
        """Writes `name`.html, self-contained, at once: pages may be large, and a study may have many."""
        with whole_files.atomic_write(self.join(f"{name}.html")) as stream:
            stream.write(content)

    def write(self, name: str, findings: Findings, command: str | None = None) -> str:
        """Writes the page `name`.md with its pictures, which TensorBoard shows too; returns the path of the page.

        Args:
            name: the study's name.
            findings: what it found.
            command: the command line that the page quotes; None if unknown.
        """
        from keras_bert.tasks.finetuning.pictures import write_pictures
        from keras_bert.training.run_loggers import add_to_tensorboard

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
        with whole_files.atomic_write(path) as stream:
            stream.write("\n".join(lines) + "\n")
        return path


def rows_of_markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table of strings."""
    yield f"| {' | '.join(header)} |"
    yield "|" + " --- |" * len(header)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def median_and_range(values: Sequence[float], shown: Callable[[float], str]) -> str:
    """`median (least–greatest)`, each by the function `shown`; the one value where there is no range."""
    median = shown(statistics.median(values))
    return median if len(values) == 1 else f"{median} ({shown(min(values))}–{shown(max(values))})"
