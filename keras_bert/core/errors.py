"""Exceptions that end a command without a traceback, and the advice in their messages."""

import difflib
import errno
import textwrap
from collections.abc import Iterable, Mapping

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_PERMISSION = (errno.EACCES, errno.EPERM, errno.EROFS)


class UserError(Exception):
    """Bad input. The message is one line that names the file or key and the remedy.

    The command line prints only the message and exits with status 2; any other exception is a bug and keeps its
    traceback.

    Example:
        try:
            keras_bert.load("runs/none")
        except keras_bert.UserError as error:
            print(error)
    """


class MissingData(UserError):
    """The examples of a task are missing; a caller with other tasks may skip this one."""


class TooLittleText(UserError):
    """A text is too short to pretrain on, for a batch or for held-out documents."""


class RunStopped(Exception):
    """A run ended before its last step, on request or because a worker was lost. The message says how to resume it.

    Attributes:
        status: the exit status of the command line.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class WorkerLost(RunStopped):
    """A run ended because another of its processes is gone."""


def writing_remedy(error: OSError) -> str:
    """The remedy for a failed write, as the beginning of a sentence."""
    if error.errno in _NO_ROOM:
        return "Free some space"
    return "Make the folder writable" if error.errno in _NO_PERMISSION else "Check the disk or the store"


def reason(error: BaseException, width: int = 200) -> str:
    """An exception's message in one line of at most `width` characters that ends with a whole word; else its type."""
    return textwrap.shorten(str(error), width, placeholder=" …") or type(error).__name__


def nearest_name(name: str, known: Iterable[str] | Mapping[str, str]) -> str:
    """A sentence with the known name that is most like an unknown one, after a blank; "" if none is like it.

    Args:
        known: the names, or `{name: how it is shown}`.
    """
    nearest = difflib.get_close_matches(name, list(known), n=1)
    if not nearest:
        return ""
    return f" The nearest is {known[nearest[0]] if isinstance(known, Mapping) else nearest[0]}."
