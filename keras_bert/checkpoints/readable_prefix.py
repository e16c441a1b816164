"""Names of checkpoints for TensorFlow's readers, which take them for glob patterns."""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator

from keras_bert import files

_GLOB_CHARACTERS = re.compile(r"[*?\[\\]")


@contextlib.contextmanager
def readable_prefix(prefix: str) -> Iterator[str]:
    """A name under which TensorFlow finds the checkpoint `prefix` inside the block.

    TensorFlow writes to a folder called `run [1]` but its readers find nothing there. Without glob characters it is
    `prefix` itself; otherwise it goes through a symbolic link or, for a remote path, a copy.
    """
    if not _GLOB_CHARACTERS.search(prefix):
        yield prefix
        return
    folder, name = files.parent(prefix), prefix[len(files.join(files.parent(prefix), "")) :]
    with tempfile.TemporaryDirectory() as scratch:
        place = os.path.join(scratch, "checkpoint")
        if files.is_remote(folder):
            files.copy_folder(folder, place)
        else:
            os.symlink(os.path.abspath(folder), place, target_is_directory=True)
        yield os.path.join(place, name)
