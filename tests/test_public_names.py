"""The public names: lazy, complete, and the same for Python, type checkers and docs/api.md."""

import ast
import inspect
import os
import re
import subprocess
import sys

import pytest
from pages import ROOT, text_of

import keras_bert
from keras_bert.public_names import MODULES, PUBLIC_NAMES


@pytest.mark.parametrize("name", MODULES)
def test_a_public_name_is_what_its_module_defines(name):
    value = getattr(keras_bert, name)
    assert (value.__name__, value.__module__) == (name, MODULES[name])
    assert value.__doc__ and not value.__doc__.startswith(f"{name}("), "A dataclass without a docstring of its own."


def test_dir_and_all_agree_with_the_page():
    assert dir(keras_bert) == keras_bert.__all__ == sorted(MODULES)
    assert sum(map(len, PUBLIC_NAMES.values())) == len(MODULES), "A name stands in two groups."
    assert re.findall(r"^### (\w+)$", text_of("docs/api.md"), re.MULTILINE) == list(MODULES)


def test_type_checkers_see_the_same_names():
    block = next(node for node in ast.parse(inspect.getsource(keras_bert)).body if isinstance(node, ast.If))
    assert block.test.id == "TYPE_CHECKING"
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert seen == {**MODULES, "text": "keras_bert"}


def test_every_model_that_load_returns_is_public():
    """A reader who finds a class in an answer must find it on the page."""
    from keras_bert.tasks.kind import task_kinds

    for kind in task_kinds():
        assert kind.head.__name__ in MODULES and kind.head.architecture in MODULES


def test_importing_the_package_imports_no_tensorflow_and_reaches_its_sub_packages():
    """In a fresh process: `keras_bert.text` used to be an AttributeError until something else imported it."""
    folder = os.path.join(ROOT, "keras_bert")
    rooms = [name for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name, "__init__.py"))]
    assert "text" in rooms
    program = (
        "import sys, keras_bert\n"
        f"for room in {rooms!r}: assert getattr(keras_bert, room) is sys.modules['keras_bert.' + room]\n"
        "assert keras_bert.Vocabulary is keras_bert.text.Vocabulary\n"
        "heavy = {'tensorflow', 'keras'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert not hasattr(keras_bert, 'no_such_name') and not hasattr(keras_bert, '__wrapped__')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
