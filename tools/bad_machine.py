"""`run.py` on a faulty machine, for tools/torture.py. The environment says what is wrong with it:

SECONDS_A_SAVE: each checkpoint takes this many seconds longer, as on a slow disk.
DISK_IS_FULL_AT: from this process's checkpoint with this number on, counted from 1, no file can grow beyond half a
    checkpoint, so the checkpoint is cut off in the middle. The limit is the system's own (RLIMIT_FSIZE).
CLOCK_JUMPS: the wall clock jumps by an hour, forwards or backwards, every other time it is read on average.
"""

import contextlib
import datetime
import os
import random
import resource
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from keras_bert.cli import main
from keras_bert.core import whole_files

HOUR = 3600.0


def slow_down(seconds: float) -> None:
    """Makes every checkpoint of this process take `seconds` longer, half before it has its name and half after."""
    from keras_bert.training import checkpoints

    class SlowMoves:
        def __getattr__(self, name):
            return getattr(whole_files, name)

        def move_folder(self, *arguments, **options):
            time.sleep(seconds / 2)
            whole_files.move_folder(*arguments, **options)
            time.sleep(seconds / 2)

    checkpoints.whole_files = SlowMoves()


def fill_the_disk(at: int) -> None:
    """Cuts off the checkpoint numbered `at` in the middle of its largest file."""
    from keras_bert.training.checkpoints import Checkpoints

    write, saves = Checkpoints._write, []

    def write_less(checkpoints, step, state):
        saves.append(step)
        if len(saves) == at:
            variables = [*checkpoints._checkpoint.model.variables, *checkpoints._checkpoint.optimizer.variables]
            size = sum(4 * variable.numpy().size for variable in variables)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, resource.RLIM_INFINITY))
        write(checkpoints, step, state)

    Checkpoints._write = write_less


def let_the_clock_jump() -> None:
    """Replaces the wall clock that Python code reads; `time.monotonic` never jumps on any machine."""
    with contextlib.suppress(ImportError):
        import pandas  # noqa: F401  # Keras imports it if it is there; its C code ends on another class of dates.
    true_time, true_nanoseconds, true_datetime = time.time, time.time_ns, datetime.datetime
    generator, offset = random.Random(os.getpid()), [0.0]

    def jumped() -> float:
        if generator.random() < 0.5:
            offset[0] = generator.choice([-HOUR, 0.0, HOUR])
        return offset[0]

    class JumpingDatetime(true_datetime):
        @classmethod
        def now(cls, tz=None):
            return true_datetime.fromtimestamp(true_time() + jumped(), tz)

    time.time = lambda: true_time() + jumped()
    time.time_ns = lambda: true_nanoseconds() + int(1e9 * jumped())
    datetime.datetime = JumpingDatetime


if __name__ == "__main__":
    if "launch" not in sys.argv:  # The launcher does not train, and starts the workers by this very file.
        if os.environ.get("CLOCK_JUMPS"):
            let_the_clock_jump()
        if os.environ.get("SECONDS_A_SAVE"):
            slow_down(float(os.environ["SECONDS_A_SAVE"]))
        if os.environ.get("DISK_IS_FULL_AT"):
            fill_the_disk(int(os.environ["DISK_IS_FULL_AT"]))
    main()
