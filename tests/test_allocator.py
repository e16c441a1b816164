"""Freed memory stays in the process."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys
from keras_bert.core.runtime import keep_freed_memory

libc = ctypes.CDLL(None)
if not hasattr(libc, "mallinfo2"):
    sys.exit(77)
FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


libc.mallinfo2.restype, libc.malloc.restype = Counts, ctypes.c_void_p
if sys.argv[1] != "given back":
    assert keep_freed_memory()
if sys.argv[1] == "kept for all that":
    libc.mallopt(-3, 128 * 1024)  # M_MMAP_THRESHOLD, as TensorFlow sets it for a dataset from a generator.
before = libc.mallinfo2()
block = libc.malloc(ctypes.c_size_t(200_000_000))
ctypes.memset(block, 1, 200_000_000)
libc.free(ctypes.c_void_p(block))
after = libc.mallinfo2()
print(after.fordblks - before.fordblks)
"""


@pytest.mark.parametrize(("how", "kept"), [("kept", True), ("kept for all that", True), ("given back", False)])
def test_a_large_block_that_is_freed_is_there_for_the_next(how, kept):
    """Without the setting it goes back to the system, so the test does see the difference."""
    result = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True)
    if result.returncode == 77:
        pytest.skip("the C library is not glibc, or an old one")
    assert result.returncode == 0, result.stderr
    assert (int(result.stdout) > 190_000_000) == kept
