"""Commands as a user gives them, in this process or in one of their own."""

import os
import subprocess
import sys

from click.testing import CliRunner

from keras_bert.cli import main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def sets(*changes):
    """`--set` before each of these."""
    return [word for change in changes for word in ("--set", change)]


def give(*words, status=0, stdin=None):
    """The result of a command in this process, which must end with this status."""
    result = CliRunner().invoke(main, [str(word) for word in words], input=stdin)
    assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
    return result


def output_of(*words, status=0):
    return give(*words, status=status).output


def run(*arguments, **options):
    command = [sys.executable, os.path.join(ROOT, "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
