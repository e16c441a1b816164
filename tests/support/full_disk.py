"""A disk that gets full while files are written."""

import contextlib
import resource


@contextlib.contextmanager
def no_file_above(most):
    """In the block, a write beyond `most` bytes of a file fails, with another number than on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
