"""Commands start without what Keras imports only because it is installed, and keep the memory that they free."""

import gc
import importlib
import importlib.util
import os
import subprocess
import sys

import keras
import pytest

from keras_bert.core import runtime
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load


@pytest.mark.parametrize("package", ["IPython", "matplotlib", "pandas", "sklearn"])
def test_what_no_command_needs_looks_uninstalled_while_keras_is_imported(package, monkeypatch):
    """Otherwise every command would start 2 seconds later. A study that draws must find it afterwards."""
    monkeypatch.delitem(sys.modules, package, raising=False)
    before = gc.get_freeze_count()
    with runtime.lean_import(), pytest.raises(ModuleNotFoundError, match=package):
        importlib.import_module(package)
    assert importlib.util.find_spec(package) is not None
    assert gc.isenabled() and gc.get_freeze_count() > before


@pytest.mark.parametrize(("command", "light"), [("run.py fill", True), (None, False)])
def test_another_program_gets_keras_whole(command, light, monkeypatch):
    """Whether it can use Keras' scikit-learn wrappers must not depend on whether it opened a model of ours first."""
    begun = []
    monkeypatch.setattr(runtime, "command_line", lambda: command)
    monkeypatch.setattr(runtime, "lean_import", lambda: begun.append(True) or runtime.contextlib.nullcontext())
    runtime.import_tensorflow()
    assert bool(begun) == light


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ([["250000 100000"], ["-1", "100000"]], 3),
        ([["max 100000"], None], 64),
        ([None, ["50000", "100000"]], 1),
        ([["9900000 100000"], ["-1", "100000"]], 64),
        ([None, None], 64),
    ],
)
def test_a_container_has_as_many_cores_as_it_may_use(limits, expected, tmp_path, monkeypatch):
    """One with 2 of a node's 64 cores started 64 processes to prepare text, each with its own memory."""
    paths = [[str(tmp_path / f"{version}-{part}") for part in range(len(version))] for version in ("2", "11")]
    for group, contents in zip(paths, limits, strict=True):
        for path, content in zip(group, contents or [], strict=contents is not None):
            with open(path, "w") as stream:
                stream.write(f"{content}\n")
    monkeypatch.setattr(runtime, "_CPU_LIMITS", paths)
    monkeypatch.setattr(runtime, "_cores_to_run_on", lambda: 64)
    assert runtime.all_cores() == expected


@pytest.mark.parametrize(
    ("limit", "given", "threads"), [(2, {}, "2"), (64, {}, None), (2, {"TF_NUM_INTRAOP_THREADS": "1"}, "1")]
)
def test_tensorflow_has_a_thread_for_each_core_of_a_container(limit, given, threads, monkeypatch):
    for kind in ("INTRAOP", "INTEROP"):
        monkeypatch.setenv(f"TF_NUM_{kind}_THREADS", "")  # To be as before when the test ends.
        monkeypatch.delenv(f"TF_NUM_{kind}_THREADS")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(runtime, "command_line", lambda: "run.py fill")
    monkeypatch.setattr(runtime, "_cores_to_run_on", lambda: 64)
    monkeypatch.setattr(runtime, "all_cores", lambda: limit)
    runtime.import_tensorflow()
    assert os.environ.get("TF_NUM_INTRAOP_THREADS") == threads


OTHER_KERAS = """
import sys
sys.path.insert(0, "")
sys.argv = ["run.py"]
from keras_bert.core.runtime import import_tensorflow
import_tensorflow()
import keras, tensorflow_text
print(keras.backend.backend(), keras.config.floatx(), keras.config.epsilon())
"""


def test_a_command_has_its_own_settings_of_keras(tmp_path):
    """Those of another program ended in tracebacks: PyTorch as the backend, float16, and Keras 2 in TensorFlow."""
    (tmp_path / "keras.json").write_text('{"backend": "jax", "floatx": "float16", "epsilon": 0.1}')
    others = {"KERAS_BACKEND": "torch", "KERAS_HOME": str(tmp_path), "TF_USE_LEGACY_KERAS": "1"}
    command = [sys.executable, "-c", OTHER_KERAS]
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **others})
    assert result.stdout.split() == ["tensorflow", "float32", "1e-07"], result.stderr


@pytest.mark.parametrize("begin", [runtime.import_tensorflow, lambda: load("none")])
def test_another_program_is_told_to_choose_tensorflow(begin, monkeypatch):
    """With PyTorch as the backend, a model was loaded in part, and the error spoke of gradients."""
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(UserError, match="Keras: needs the backend tensorflow. Received: torch. Set KERAS_BACKEND"):
        begin()


@pytest.mark.parametrize("begin", [runtime.import_tensorflow, lambda: load("none")])
def test_another_program_is_told_to_keep_weights_in_float32(begin):
    """The embeddings ended in a TypeError."""
    keras.config.set_floatx("float16")
    try:
        with pytest.raises(
            UserError, match="Keras: needs the floatx float32, in which .*. Received: float16. Call kera"
        ):
            begin()
    finally:
        keras.config.set_floatx("float32")


def test_a_stream_that_was_closed_is_opened_to_nothing(monkeypatch):
    """With `2>&-` a command ended where it withholds what TensorFlow logs, and its own error was not seen either."""
    monkeypatch.setattr(sys, "stderr", None)
    stdout = sys.stdout
    runtime.open_closed_streams()
    with sys.stderr as opened:
        assert opened.name == os.devnull and opened.write("text") == 4
    assert sys.stdout is stdout


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
    """Without the setting the block goes back to the system, so the test sees the difference."""
    result = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True)
    if result.returncode == 77:
        pytest.skip("the C library is not glibc, or an old one")
    assert result.returncode == 0, result.stderr
    assert (int(result.stdout) > 190_000_000) == kept
