"""The names of TensorFlow's checkpoints for its readers, which look them up as patterns."""

import contextlib
import os
import re
import tempfile

from keras_bert import files

_OF_PATTERNS = re.compile(r"[*?\[\\]")


@contextlib.contextmanager
def readable_prefix(prefix):
    """A name under which TensorFlow finds the checkpoint `prefix`, as long as the block lasts.

    Its readers find nothing in a folder called `run [1]`, which they have written themselves. It is `prefix` itself
    where no sign of a pattern is in it, else it leads through a link, or for a store through a copy.
    """
    if not _OF_PATTERNS.search(prefix):
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
