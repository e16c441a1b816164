"""The C library's allocator, told to keep the memory that is freed, because every training step asks for it again."""

import ctypes

# mallopt(3): malloc.h of glibc. Other C libraries, and other allocators that were loaded first, have no such function.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_SETTINGS = {_ARENA_MAX: 1, _MMAP_MAX: 0, _TRIM_THRESHOLD: -1}


def keep_freed_memory():
    """Keeps large blocks in the process instead of giving them back to the system; False where that cannot be set.

    glibc gives large blocks back at once. A step on a CPU frees and takes hundreds of megabytes, so that a sixth of its
    time went into the pages that the system cleared for it anew (docs/performance.md). One arena for all threads,
    because those of the others cannot hold large blocks. And no mapping for single blocks at all: a size from which on
    they have one would not stay, as TensorFlow sets its own with the first dataset from a generator (on Python 3.11).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return all([mallopt(name, value) for name, value in _SETTINGS.items()])
