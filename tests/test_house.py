"""The house's rule: imports point one way, and the network knows of keras.ops alone."""

import ast
import glob
import os

ROOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "keras_bert")
FLOORS = [
    {"errors", "lazy", "public_names", "allocator", "program"},
    {"extras", "quiet", "terminal_bar", "time_limits"},
    {"stores", "disks", "drawing"},
    {"files"},
    {"whole_files"},
    {"leases"},
    {"globs", "locks"},
    {"settings"},
    {"model_kinds"},
    {"config"},
    {"task_kinds"},
    {"layers", "text"},
    {"checkpoints"},
    {"models", "data"},
    {"inputs"},
    {"inference"},
    {"training"},
    {"export"},
    {"tasks"},
    {"studies"},
    {"cli"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def imports():
    """(file, its room, imported module) of every import in the package."""
    for path in glob.glob(os.path.join(ROOT, "**", "*.py"), recursive=True):
        name = os.path.relpath(path, ROOT)
        room = name.split(os.sep)[0].removesuffix(".py")
        if room == "__init__":
            continue
        module = ast.parse(open(path, encoding="utf-8").read())
        for block in [node for node in module.body if isinstance(node, ast.If)]:
            if getattr(block.test, "id", None) == "TYPE_CHECKING":  # For annotations alone.
                module.body.remove(block)
        for node in ast.walk(module):
            if isinstance(node, ast.Import):
                yield from ((name, room, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module == "keras_bert":
                modules = [alias.name for alias in node.names if alias.name != "__version__"]
                yield from ((name, room, f"keras_bert.{module}") for module in modules)
            elif isinstance(node, ast.ImportFrom):
                yield name, room, node.module


def test_imports_point_one_way():
    inside = [
        (name, room, module.split(".")[1]) for name, room, module in imports() if module.startswith("keras_bert.")
    ]
    assert len(inside) > 50
    for name, room, target in inside:
        if room != target:
            assert FLOOR_OF[room] > FLOOR_OF[target], f"{name} imports {target}, which is not below it"


def test_layers_and_models_know_of_keras_alone():
    for name, room, module in imports():
        if room in ("layers", "models"):
            assert module.split(".")[0] not in ("tensorflow", "tensorflow_text", "click", "yaml"), name


def test_batches_are_distributed_in_one_place():
    """TensorFlow's default would give each worker other files of a text, so that batches depended on their number."""
    files = glob.glob(os.path.join(ROOT, "**", "*.py"), recursive=True)
    found = [path for path in files if "experimental_distribute_dataset" in open(path, encoding="utf-8").read()]
    assert [os.path.relpath(path, ROOT) for path in found] == [os.path.join("training", "distribution.py")]


def test_modules_that_not_every_system_has_are_imported_where_they_are_missed():
    """Windows has none of them, and a package must not fail there on import for a lock or a measurement."""
    missing = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
    for path in glob.glob(os.path.join(ROOT, "**", "*.py"), recursive=True):
        with open(path, encoding="utf-8") as stream:
            module = ast.parse(stream.read())
        for node in module.body:  # One in a `try` is not met here, nor one in a function.
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else {node.module}
                assert not names & missing, path
