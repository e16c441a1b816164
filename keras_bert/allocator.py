"""The C library's allocator, told to keep the memory that is freed, because every training step asks for it again."""

import ctypes

# mallopt(3): malloc.h of glibc. Other C libraries, and other allocators that were loaded first, have no such function.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_SETTINGS = {_ARENA_MAX: 1, _MMAP_THRESHOLD: 1 << 30, _TRIM_THRESHOLD: -1}


def keep_freed_memory():
    """Keeps blocks below 1 GB in the process instead of giving them back to the system; False where that cannot be set.

    glibc gives large blocks back at once. A step on a CPU frees and takes hundreds of megabytes, so that a sixth of its
    time went into the pages that the system cleared for it anew (docs/performance.md). One arena for all threads,
    because those of the others cannot hold large blocks.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return all([mallopt(name, value) for name, value in _SETTINGS.items()])
