"""Progress of long work on stderr: on a terminal a bar with the rate and the time left, elsewhere a line a minute.

Quick work shows nothing. With TQDM_DISABLE=1 in the environment, no work shows anything.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tqdm

from keras_bert.core.files import BytesRead

_SECONDS_UNSEEN = 2.0
_SECONDS_A_LINE = 60.0
_SECONDS_A_POLL = 1.0
_COLUMNS = 80


def in_notebook() -> bool:
    """Whether the program runs in a notebook, which shows widgets instead of a terminal's lines."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    # Colab's shell is a subclass with a name of its own.
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)


def draws_bars() -> bool:
    """Whether long work draws a bar: on a terminal and in a notebook, unless TQDM_DISABLE is set."""
    return (sys.stderr.isatty() or in_notebook()) and not os.environ.get("TQDM_DISABLE")


class Bar(tqdm.tqdm):
    """A tqdm bar that appears only after a while, and prints lines where there is no terminal.

    Args:
        arguments, options: as for tqdm.
        read: files that are read meanwhile, in this order. If their sizes are known, the bar measures the bytes read,
            and shows the number of items that `update` counts.
    """

    disable: bool
    nrows: int | None
    monitor_interval = 0  # No thread: every update looks at the clock.

    def __init__(self, *arguments: Any, read: Sequence[str] = (), **options: Any):
        self._in_lines = not (options.get("file") or sys.stderr).isatty()
        self._read, self._unit = BytesRead(read), options.get("unit", "")
        self._items, self._ahead, self._position, self._lines = 0, 0, 0, 0
        if self._read.total:
            options |= {"total": self._read.total, "unit": "B", "unit_scale": True}
        if self._in_lines:  # With no columns, tqdm writes the figures alone.
            options |= {"ncols": 0, "mininterval": _SECONDS_A_LINE, "delay": _SECONDS_A_LINE}
        else:
            options |= {"dynamic_ncols": True, "delay": _SECONDS_UNSEEN}
        super().__init__(*arguments, **{**options, "miniters": 0})

    def __iter__(self) -> Iterator[Any]:
        if not self._read.total:
            yield from super().__iter__()
            return
        with self:
            for item in self.iterable:
                yield item
                self.update()

    def position(self) -> int:
        """The number of bytes of the files read so far."""
        return self._read.position()

    def update(self, n: Any = 1, position: int | None = None) -> bool | None:
        """Counts `n` more items, which end at byte `position` of the files; None for the bytes read so far."""
        n, self._ahead = n - self._ahead, 0
        if not self._read.total:
            return super().update(n)
        self._items += n
        self._position = self.position() if position is None else position
        return self._show(self._position)

    def partly(self, share: float, n: int) -> None:
        """Shows that a share, from 0 to 1, of the next `update`'s `n` items is done."""
        done = int(share * n)
        n, self._ahead = done - self._ahead, done
        if not self._read.total:
            super().update(n)
            return
        self._items += n
        self._show(int(self._position + share * (self.position() - self._position)))

    def _show(self, position: int) -> bool | None:
        if self.disable or self._time() - self.last_print_t < self.mininterval:
            return None
        self.postfix = f"{self._items:,}{self._unit}"
        return super().update(position - self.n)

    @property
    def format_dict(self) -> Any:
        values = super().format_dict
        if not self._in_lines and (values["ncols"] or 0) < 1:  # A terminal that does not report its size.
            values["ncols"] = _COLUMNS
        return values

    def display(self, msg: str | None = None, pos: int | None = None) -> Any:
        if not self._in_lines:
            self.nrows = max(self.nrows or 0, 0) or None
            return super().display(msg, pos)
        if (minutes := int((self._time() - self.start_t) // _SECONDS_A_LINE)) > self._lines:
            self._lines = minutes
            self._write_line()
        return True

    def _write_line(self) -> None:
        with contextlib.suppress(BrokenPipeError):  # Left to the next message; see `messages`.
            self.fp.write(f"{self}\n")
            self.fp.flush()

    def clear(self, nolock: bool = False) -> None:
        if not self._in_lines:
            super().clear(nolock)

    def close(self) -> None:
        if not getattr(self, "disable", True) and self._read.total:
            self.n, self.postfix = self._position, f"{self._items:,}{self._unit}"
        if not getattr(self, "_in_lines", False):
            super().close()
        elif not getattr(self, "disable", True):
            self.disable = True
            self._decr_instances(self)
            if self._lines:
                self._ema_dt = lambda: None  # So that the line shows the average rate.
                self._write_line()


def terminal_bar(
    what: str,
    unit: str,
    total: int | None = None,
    over: Iterable | None = None,
    leave: bool = True,
    read: Sequence[str] = (),
    **options: Any,
) -> Bar:
    """A bar to update or, if it is made `over` an iterable, to iterate over.

    Args:
        what: what is being done, the first words of the bar.
        unit: what is counted, in the plural.
        read, options: see `Bar`.
    """
    return Bar(over, desc=what, unit=f" {unit}", total=total, leave=leave, read=read, **options)


@contextlib.contextmanager
def polled(bar: Bar, done: Callable[[], int]) -> Iterator[None]:
    """Sets a bar to `done()` every second during the block, in a thread, and closes it at the end.

    If a store does not answer, asks again a second later.
    """
    ended = threading.Event()

    def poll() -> None:
        while not ended.wait(_SECONDS_A_POLL):
            with contextlib.suppress(OSError):
                bar.update(done() - bar.n)

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        bar.close()


def working(what: str) -> contextlib.AbstractContextManager[None]:
    """Shows the elapsed time of the block, for work of a library that does not report its progress."""
    return polled(terminal_bar(what, "", leave=False, bar_format="{desc} [{elapsed}]"), lambda: 0)
