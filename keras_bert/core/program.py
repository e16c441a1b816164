"""How this program was called, for messages that suggest a command and for starting it again."""

import os
import shlex
import sys

VERSION = "0.2.0"

_PROGRAMS = {"run.py": "python run.py", "keras-bert": "keras-bert"}
_CALLED = _PROGRAMS.get(os.path.basename(sys.argv[0]))

# `keras-bert` if the package is installed, `python run.py` in a checkout.
PROGRAM = _CALLED or "python run.py"


def command_line() -> str | None:
    """The command line as typed; None if another program called this one."""
    return f"{_CALLED} {shlex.join(sys.argv[1:])}" if _CALLED else None


_fresh_folder: str | None = None


def note_fresh_folder(folder: str | None) -> None:
    """Notes the folder that --fresh has chosen for a run; None for a command without it."""
    global _fresh_folder
    _fresh_folder = folder


def same_command() -> str:
    """How to resume a run, for messages: the same command; after --fresh, which would start over, a changed one."""
    if _fresh_folder is None:
        return "the same command"
    return f"the same command with --output {shlex.quote(_fresh_folder)} and without --fresh"


def own_program() -> list[str]:
    """The beginning of a command line that starts this program in a process of its own."""
    if _CALLED:
        return [sys.executable, os.path.abspath(sys.argv[0])]
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {home!r}); from keras_bert.cli import main; main()"]
