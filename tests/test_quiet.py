"""Commands start without what Keras imports only because it is installed."""

import gc
import importlib
import importlib.util
import sys

import pytest

from keras_bert.core import runtime


@pytest.mark.parametrize("package", ["matplotlib", "sklearn"])
def test_what_no_command_needs_looks_uninstalled_while_keras_is_imported(package, monkeypatch):
    """Or every command starts 2 seconds later; and a study that draws must find it afterwards."""
    monkeypatch.delitem(sys.modules, package, raising=False)
    before = gc.get_freeze_count()
    with runtime.lean_import(), pytest.raises(ModuleNotFoundError, match=package):
        importlib.import_module(package)
    assert importlib.util.find_spec(package) is not None
    assert gc.isenabled() and gc.get_freeze_count() > before


@pytest.mark.parametrize(("command", "light"), [("run.py fill", True), (None, False)])
def test_another_program_gets_keras_whole(command, light, monkeypatch):
    """Its own use of Keras' scikit-learn wrappers must not depend on whether it opened a model of ours first."""
    begun = []
    monkeypatch.setattr(runtime, "command_line", lambda: command)
    monkeypatch.setattr(runtime, "lean_import", lambda: begun.append(True) or runtime.contextlib.nullcontext())
    runtime.import_tensorflow()
    assert bool(begun) == light
