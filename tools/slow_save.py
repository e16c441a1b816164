"""`run.py` with checkpoints that take SECONDS_A_SAVE longer, for tools/torture.py: as on a slow disk."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from keras_bert import whole_files
from keras_bert.cli import main


def slow_down(seconds: float) -> None:
    """Makes every checkpoint of this process take so much longer, half before it has its name and half after."""
    from keras_bert import files
    from keras_bert.training import checkpoints

    class SlowFiles:
        def __getattr__(self, name):
            return getattr(files, name)

        def move_folder(self, *arguments, **options):
            time.sleep(seconds / 2)
            whole_files.move_folder(*arguments, **options)
            time.sleep(seconds / 2)

    checkpoints.files = SlowFiles()


if __name__ == "__main__":
    if "launch" not in sys.argv:  # The launcher does not save, and starts workers by this very file.
        slow_down(float(os.environ["SECONDS_A_SAVE"]))
    main()
