"""Commands in a process of their own, as a user starts them."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def sets(*changes):
    """`--set` before each of these."""
    return [word for change in changes for word in ("--set", change)]


def run(*arguments, **options):
    command = [sys.executable, os.path.join(ROOT, "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
