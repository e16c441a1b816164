"""What every test shares: quiet TensorFlow, two logical CPUs, one strategy over both, and golden arrays.

No test imports PyTorch: importing triton, which comes with it on Linux, after TensorFlow is a segmentation fault. What
PyTorch and other implementations compute lies in tests/goldens; tools/goldens makes it and says how to add to it.
"""

import collections
import gc
import importlib.abc
import importlib.util
import os
import signal
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# XLA's own passes stay on; LLVM's take half of a compilation, to speed up what runs for milliseconds.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import pytest
import said
from quick_tracing import quicken, rewrite_graphs

from keras_bert.core.messages import LOGGER
from keras_bert.core.runtime import lean_import


def start_tensorflow(onednn=False):
    # oneDNN builds kernels for each shape, and tests compute many shapes only a few times: a twelfth of the time.
    # Commands that run in a process of their own have it, and so does `make parity`.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_ENABLE_ONEDNN_OPTS", str(int(onednn)))
        with lean_import():
            import keras  # noqa: F401
            import tensorflow as tf
            import tensorflow_text  # noqa: F401

    # Must come before anything touches a device; the two stand in for two GPUs.
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )

    quicken()

    # Tests that ask for `rewritten_graphs` turn it on.
    rewrite_graphs(False)


def pytest_configure(config):
    # With workers, the process that hands out the tests needs no TensorFlow, and they would all wait for its import.
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        start_tensorflow(onednn=bool(config.getoption("--goldens")))


# A shell starts background jobs with SIGINT ignored, and nohup does so with SIGHUP. Processes inherit ignored signals,
# those that tests start included.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


class NeverBesideTensorFlow(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes these packages look installed, and fails a test that imports one, itself or through a library."""

    PACKAGES = ("torch", "triton", "transformers", "sentence_transformers", "keras_hub")

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name in self.PACKAGES else None

    def exec_module(self, module):
        pytest.fail(
            f"{module.__name__} is imported in a process with TensorFlow, which crashes where triton is installed. "
            "Compute with it in a process of its own: see tools/goldens/__main__.py."
        )


sys.meta_path.insert(0, NeverBesideTensorFlow())


@pytest.fixture(scope="module", autouse=True)
def what_is_here_stays():
    """Python and Keras often search for garbage, which would include thousands of tests and what they share."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nobody_listens_longer():
    yield
    while said.LISTENERS:
        LOGGER.removeHandler(said.LISTENERS.pop())


@pytest.fixture(scope="session")
def mirrored_strategy():
    from keras_bert.training.strategy import make_strategy

    return make_strategy("mirrored", ["CPU:0", "CPU:1"])


@pytest.fixture(scope="session", autouse=True)
def small_matrix_products():
    """A run times large products, to say how well the machine is used: a third of a second, which no test needs."""
    from keras_bert.training import profiling

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(profiling._SIZES, "CPU", 128)
        yield


@pytest.fixture(scope="session", autouse=True)
def freed_memory_goes_back():
    """Commands that tests call in this process would keep it: up to 10 GB over hundreds of tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keras_bert.core.runtime._SETTINGS", {})
        yield


@pytest.fixture(scope="session", autouse=True)
def one_graph_tokenizes_for_a_vocabulary():
    """Most models of a file share a vocabulary, and tracing the tokenizer is a third of the time of some answers."""
    from keras_bert.text import tokenizers

    graphs, own_graphs = {}, tokenizers.traced_graphs

    def shared_graphs(tokenizer):
        if tokenizer.resources:
            return own_graphs(tokenizer)  # A SavedModel holds what its own tokenizer has loaded.
        vocabulary = tokenizer.vocabulary
        settings = {name: value for name, value in vars(tokenizer).items() if name in vocabulary.tokenizer_settings}
        pieces = (type(vocabulary), vocabulary.fingerprint, len(vocabulary), repr(vocabulary.added))
        return graphs.setdefault((*pieces, repr(settings)), {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizers, "traced_graphs", shared_graphs)
        yield


@pytest.fixture(scope="module")
def rewritten_graphs():
    """For tests of what rewriting could change."""
    rewrite_graphs(True)
    yield
    rewrite_graphs(False)


def pytest_addoption(parser):
    parser.addoption(
        "--goldens",
        metavar="DIR",
        help="compare with the arrays that `python tools/goldens DIR` made, and run the live tests",
    )


@pytest.fixture(scope="session")
def goldens(request):
    """The folder of golden arrays."""
    import goldens as golden_arrays

    return request.config.getoption("--goldens") or golden_arrays.COMMITTED


# Files that take minutes, the longest first: a worker left alone with one at the end keeps only one core busy.
_LONGEST = """
test_multiworker test_torture test_rollbacks test_finetune_kinds test_notebooks test_run test_pretraining
test_one_way test_docs test_signatures test_text_batches test_optimizer_steps test_lora_runs test_any_store
""".split()


def pytest_collection_modifyitems(config, items):
    # Then the files with many slow tests.
    slow = collections.Counter(item.path for item in items if item.get_closest_marker("slow"))
    places = {f"{name}.py": place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: (places.get(item.path.name, len(places)), -slow[item.path]))
    if not config.getoption("--goldens"):
        for item in items:
            if item.get_closest_marker("live"):
                item.add_marker(pytest.mark.skip(reason="live: runs in `make parity`"))


def pytest_terminal_summary(terminalreporter):
    """Which files take longest: `--durations` names tests, but most of the time goes into many short ones."""
    seconds = collections.Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    if seconds:
        terminalreporter.section(f"{sum(seconds.values()):,.0f} seconds of tests on {os.cpu_count()} cores, by file")
    for file, in_all in seconds.most_common(15):
        terminalreporter.write_line(f"{in_all:5.0f}s {file}")


_CHANGES = ("fsync", "mkdir", "remove", "rename", "replace", "rmdir", "unlink")


class Killed(BaseException):
    """Stands for SIGKILL: nothing that the process would still do changes the disk."""


@pytest.fixture
def killed_at(monkeypatch):
    """Function (number, action) that calls `action` and kills it at the change of the disk with that number.

    Returns how many changes there were in all, or None if the action was killed.
    """

    def run(number, action):
        made = []

        def counted(original):
            def call(*args, **options):
                if len(made) == number:
                    raise Killed
                made.append(original)
                return original(*args, **options)

            return call

        with monkeypatch.context() as patch:
            for name in _CHANGES:
                patch.setattr(os, name, counted(getattr(os, name)))
            try:
                action()
            except Killed:
                return None
        return len(made)

    return run


@pytest.fixture
def disk_calls(monkeypatch):
    """List of what is done to the disk: ("fsync", path), ("rename", source, target), ("rmdir", path)."""
    calls, sync, rename, replace = [], os.fsync, os.rename, os.replace

    def synced(descriptor):
        calls.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))
        sync(descriptor)

    def renamed(original):
        def call(source, target, **options):
            calls.append(("rename", os.fspath(source), os.fspath(target)))
            original(source, target, **options)

        return call

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed(rename))
    monkeypatch.setattr(os, "replace", renamed(replace))
    return calls


@pytest.fixture
def quick_commands(monkeypatch):
    """For tests that start many processes: like this one, each imports and traces in three fifths of the time.

    Other tests start what users start.
    """
    monkeypatch.setenv("PYTHONPATH", os.path.join(os.path.dirname(os.path.abspath(__file__)), "support", "quick_start"))


@pytest.fixture(scope="session", autouse=True)
def disks_do_not_wait():
    """A run waits for the disk forty times. Tests of what a power cut leaves only need the order of the calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def leases_at_once():
    """A lease on a store waits a second for others that come at the same time; in tests, none come by chance."""
    from keras_bert.core import locks

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locks, "SETTLED_AFTER", 0.0)
        yield
