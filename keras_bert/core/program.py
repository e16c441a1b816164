"""How this program was called, for messages that suggest a command and for starting it again."""

import os
import shlex
import sys

VERSION = "0.2.0"

# sys.argv[0] is "-m" while Python imports this package to run it as a module.
_PROGRAMS = {"run.py": "python run.py", "keras-bert": "keras-bert", "-m": "python -m keras_bert"}
_CALLED = _PROGRAMS.get(os.path.basename(sys.argv[0]))

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


def called_program() -> list[str]:
    """The beginning of a command line that calls the running program again, whichever it is."""
    is_module = _CALLED == _PROGRAMS["-m"]
    return [sys.executable, *(["-m", "keras_bert"] if is_module else [os.path.abspath(sys.argv[0])])]


def own_program() -> list[str]:
    """The beginning of a command line that starts this program in a process of its own."""
    if _CALLED:
        return called_program()
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {home!r}); from keras_bert.cli import main; main()"]
