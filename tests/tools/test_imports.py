"""No test runs most benchmarks, but what they take from the package must exist."""

import ast
import glob
import os

import pytest
from pages import ROOT

TOOLS = sorted(glob.glob(os.path.join(ROOT, "tools", "**", "*.py"), recursive=True))


def imports_of(path):
    """The statements `from keras_bert… import …` of a file, in its functions too."""
    with open(path, encoding="utf-8") as stream:
        statements = ast.walk(ast.parse(stream.read()))
    return [node for node in statements if isinstance(node, ast.ImportFrom) and node.module.startswith("keras_bert")]


@pytest.mark.parametrize("path", [path for path in TOOLS if imports_of(path)], ids=os.path.basename)
def test_what_a_tool_imports_exists(path):
    for statement in imports_of(path):
        exec(compile(ast.Module([statement], []), path, "exec"))
