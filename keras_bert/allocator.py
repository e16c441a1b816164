"""Makes the C library's allocator keep freed memory, because every training step allocates it again."""

import ctypes

# mallopt(3), from malloc.h of glibc. Other C libraries, and allocators preloaded in its place, do not have it.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_SETTINGS = {_ARENA_MAX: 1, _MMAP_MAX: 0, _TRIM_THRESHOLD: -1}


def keep_freed_memory() -> bool:
    """Keeps large freed blocks in the process instead of returning them to the system; False if that cannot be set.

    glibc returns large blocks at once. A step on a CPU frees and allocates hundreds of megabytes, and a sixth of its
    time went into pages that the system had to clear again (docs/performance.md). All threads share one arena, because
    the arenas of other threads cannot hold large blocks. No block gets its own mapping: a size threshold for mappings
    would not last, as TensorFlow sets its own with the first dataset from a generator (on Python 3.11).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    # All are set, whatever becomes of the first.
    return all([mallopt(name, value) for name, value in _SETTINGS.items()])  # noqa: C419
