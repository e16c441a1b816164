"""The house's rule: imports point one way, and the network knows of keras.ops alone."""

import ast
import functools
import glob
import os

ROOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "keras_bert")
FLOORS = [
    {"public_names", "core.errors", "core.program"},
    {"core.imports", "core.runtime", "core.time_limits"},
    {"core.stores", "core.disks", "core.drawing"},
    {"core.files"},
    {
        "core.array_files",
        "core.messages",
        "core.patterns",
        "core.terminal_bar",
        "core.whole_files",
        "core.yaml_and_json",
    },
    {"core.locks", "core.settings"},
    {"models.kind", "models.term"},
    {"config", "models.bert.config"},
    {"tasks.kind", "tasks.head"},
    {"layers", "text"},
    {"models.tensor_names", "models.sizes"},
    {"checkpoints"},
    {"models", "data"},
    {"inputs"},
    {"inference"},
    {"training"},
    {"export"},
    {"tasks"},
    {"api"},
    {"studies"},
    {"cli"},
    {"__main__"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


@functools.cache
def imports():
    """[(file, module)] of every import in the package, annotations' alone left out."""
    found = []
    for path in glob.glob(os.path.join(ROOT, "**", "*.py"), recursive=True):
        name = os.path.relpath(path, ROOT)
        if name == "__init__.py":
            continue
        module = ast.parse(open(path, encoding="utf-8").read())
        for block in [node for node in module.body if isinstance(node, ast.If)]:
            if getattr(block.test, "id", None) == "TYPE_CHECKING":
                module.body.remove(block)
        for node in ast.walk(module):
            if isinstance(node, ast.Import):
                found += [(name, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "keras_bert":
                names = [alias.name for alias in node.names if alias.name != "__version__"]
                found += [(name, f"{node.module}.{one}") for one in names]  # A module or a name in one.
            elif isinstance(node, ast.ImportFrom):
                found.append((name, node.module))
    return found


def floor(module):
    """The floor of a module, such as `data.batches.masking`: that of the longest name at its beginning."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next(FLOOR_OF[name] for name in names if name in FLOOR_OF)


def test_imports_point_one_way():
    inside = [(name, module) for name, module in imports() if module.startswith("keras_bert.")]
    assert len(inside) > 50
    for name, module in inside:
        own = name.removesuffix(".py").removesuffix("/__init__").replace(os.sep, ".")
        assert floor(own) >= floor(module.removeprefix("keras_bert.")), f"{name} imports {module}, which is above it"


def test_networks_know_of_keras_alone():
    for name, module in imports():
        if name.startswith(("layers", "models")) or name.endswith("network.py") and name.startswith("tasks"):
            assert module.split(".")[0] not in ("tensorflow", "tensorflow_text", "click", "yaml"), name


def test_batches_are_distributed_in_one_place():
    """TensorFlow's default would give each worker other files of a text, and batches would depend on their number."""
    files = glob.glob(os.path.join(ROOT, "**", "*.py"), recursive=True)
    found = [path for path in files if "experimental_distribute_dataset" in open(path, encoding="utf-8").read()]
    assert [os.path.relpath(path, ROOT) for path in found] == [os.path.join("training", "strategy.py")]


def test_modules_that_not_every_system_has_are_imported_where_they_are_missed():
    """Windows has none of them, and importing the package must not fail there for a lock or a measurement."""
    missing = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
    for path in glob.glob(os.path.join(ROOT, "**", "*.py"), recursive=True):
        with open(path, encoding="utf-8") as stream:
            module = ast.parse(stream.read())
        for node in module.body:  # This loop sees no import inside a `try` or a function.
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else {node.module}
                assert not names & missing, path
