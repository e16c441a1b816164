"""Writes docs/api.md: every public name, from its docstring and its annotations in the source.

    python tools/make_api_page.py

tests/tools/test_make_api_page.py fails if the page is out of date.
"""

import ast
import functools
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

import keras_bert
from keras_bert.public_names import PUBLIC_NAMES

PAGE = os.path.join(ROOT, "docs", "api.md")
_WIDTH = 120
_INTRODUCTION = """# The public names

Written by `python tools/make_api_page.py` from the docstrings; examples are in [python.md](python.md). Every name below
is an attribute of `keras_bert`, imported on first use. The sub-package `keras_bert.text` has the tokenizer, the
vocabulary and sentence splitting too. All other modules may change without notice.
"""
# A heading of a section: "Args:", "Returns a dict:", or with its text on the same line, "Returns: a list".
_HEADING = re.compile(r"(Args|(?:Class a|A)ttributes|Call arguments|Returns(?: a dict)?|Raises|Example):\s*(.*)")
_ITEM = re.compile(r"(\*{0,2}\w+(?:, \w+)*): (.*)", re.DOTALL)


def page() -> str:
    """The content of docs/api.md."""
    contents = (_bullet(f"[{group}](#{_anchor(group)}): {_links(group)}") for group in PUBLIC_NAMES)
    parts = [_INTRODUCTION, "\n".join(contents)]
    for group, names in PUBLIC_NAMES.items():
        parts.append(f"## {group}")
        parts += [_entry(name, getattr(keras_bert, name)) for name in names]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _links(group: str) -> str:
    return ", ".join(f"[`{name}`](#{_anchor(name)})" for name in PUBLIC_NAMES[group])


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def _entry(name: str, value: Any) -> str:
    text, sections = _parsed(value)
    if inspect.isclass(value) and "__init__" in vars(value) and vars(value)["__init__"].__doc__:
        its_text, its_sections = _parsed(value.__init__)
        text, sections = "\n\n".join([text, *its_text.splitlines()]), [*sections, *its_sections]
    parts = [f"### {name}", f"```python\n{signature(value)}\n```", text, *(_section(*each) for each in sections)]
    members = [_member(*member) for member in _members(value)] if inspect.isclass(value) else []
    parts += ["Members:", "\n".join(members)] if members else []
    return "\n\n".join(part for part in parts if part)


def _parsed(value: Any) -> tuple[str, list[tuple[str, str]]]:
    """A docstring as the text before its sections, and `(heading, text)` of each section."""
    text: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    for line in inspect.cleandoc(value.__doc__ or "").splitlines():
        heading = _HEADING.fullmatch(line)
        if heading:
            sections.append((heading[1], [heading[2]]))
        elif sections and (line.startswith(" ") or sections[-1][1] != [""] and line):
            sections[-1][1].append(line)
        elif not sections:
            text.append(line)
    return "\n".join(text).strip(), [(heading, inspect.cleandoc("\n".join(lines))) for heading, lines in sections]


def _section(heading: str, text: str) -> str:
    """A section as a line of text, a list of its items, or code."""
    if heading == "Example":
        return f"```python\n{text}\n```"
    items = _items(text)
    return f"{heading}:\n\n" + "\n".join(map(_bullet, items)) if items else _wrapped(f"{heading}: {_flowing(text)}")


def _items(text: str) -> list[str]:
    """The `names: text` of a section, names in backticks; none for a section that is plain text."""
    found = [_ITEM.fullmatch(item) for item in re.split(r"\n(?=\S)", text)]
    if not all(found):
        return []
    return [f"`{item[1].replace(', ', '`, `')}`: {_flowing(item[2])}" for item in found if item]


def _wrapped(text: str, first: str = "", indent: str = "") -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _bullet(text: str) -> str:
    return _wrapped(text, "- ", "  ")


def _flowing(text: str) -> str:
    return " ".join(text.split())


def _members(value: type) -> Iterator[tuple[str, Any]]:
    """`(name, member)` of a class's own public methods and properties that its docstring does not list.

    What a base class outside the package defines too, such as `call` of a Keras layer, is left out.
    """
    outside = [base for base in value.__mro__ if not base.__module__.startswith("keras_bert")]
    for name, member in vars(value).items():
        is_member = isinstance(member, (property, functools.cached_property, classmethod, staticmethod))
        if name.startswith("_") or not (is_member or inspect.isfunction(member)):
            continue
        if not any(name in vars(base) for base in outside) and member.__doc__:
            yield name, member


def _member(name: str, member: Any) -> str:
    """A member as an item of a list: what it takes, and the first paragraph and the sections of its docstring."""
    text, sections = _parsed(member)
    title = name
    if not isinstance(member, (property, functools.cached_property)):
        function = inspect.unwrap(getattr(member, "__func__", member))
        title = f"{name}({', '.join(_parameters(_definition(function), function.__module__, with_types=False))})"
    parts = [f"`.{title}`: {_flowing(text.partition(chr(10) * 2)[0])}"]
    for heading, content in sections:
        if heading in ("Args", "Returns"):
            items = [item.rstrip(".") for item in _items(content)]
            parts.append(f"{heading}: {'; '.join(items) + '.' if items else _flowing(content)}")
    return _bullet(" ".join(parts))


def signature(value: Any) -> str:
    """How a function or class is called, with the annotations as they are in the source."""
    definition, returns = _definition(value), ""
    if isinstance(definition, ast.ClassDef):
        found = _class_parameters(value)
        if found is None:
            return f"class {value.__name__}"
        parameters = found
    else:
        parameters = _parameters(definition, value.__module__)
        returns = f" -> {_source(definition.returns)}" if definition.returns else ""
    line = f"{value.__name__}({', '.join(parameters)}){returns}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{value.__name__}(", *(f"    {parameter}," for parameter in parameters), f"){returns}"])


def _definition(value: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


def _source(node: ast.expr) -> str:
    """An annotation or a default, without the quotes around an annotation."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        return node.value
    return ast.unparse(node).replace("'", '"')


def _default(node: ast.expr, module: str) -> str:
    """A default: the value of a constant of its module, and what a dataclass has or makes anew."""
    if isinstance(node, ast.Name):
        return repr(getattr(sys.modules[module], node.id)).replace("'", '"')
    of_field = (
        {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords} if isinstance(node, ast.Call) else {}
    )
    if "default_factory" in of_field:
        return f"{of_field['default_factory']}()"
    if "default" in of_field:
        return of_field["default"]
    return ast.unparse(node).replace("'", '"')


def _class_parameters(value: type) -> list[str] | None:
    """Those of the first `__init__` of a class and its bases in the package, else its fields; None without either."""
    fields: dict[str, str] = {}
    for base in value.__mro__:
        if not base.__module__.startswith("keras_bert"):
            continue
        body = _definition(base).body
        for node in body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                return _parameters(node, base.__module__)
        own = {}
        for node in body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_field(node):
                default = f" = {_default(node.value, base.__module__)}" if node.value else ""
                own[node.target.id] = f"{node.target.id}: {_source(node.annotation)}{default}"
        fields = {**own, **fields}  # A base's fields come first.
    if hasattr(value, "_fields"):
        return list(fields.values())
    known = getattr(value, "__dataclass_fields__", None)
    if known is None:
        return None
    by_keyword = [text for name, text in fields.items() if known[name].kw_only]
    others = [text for name, text in fields.items() if not known[name].kw_only]
    return [*others, *(["*", *by_keyword] if by_keyword else [])]


def _is_field(node: ast.AnnAssign) -> bool:
    """Whether an annotated name in a dataclass is a public parameter."""
    return not ast.unparse(node.target).startswith("_") and "ClassVar" not in ast.unparse(node.annotation)


def _parameters(definition: ast.FunctionDef, module: str, with_types: bool = True) -> list[str]:
    """The parameters without `self` and `cls`, each with its annotation and default."""
    arguments = definition.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults

    def text(argument: ast.arg, default: ast.expr | None = None, stars: str = "") -> str:
        is_typed = with_types and argument.annotation
        typed = f": {_source(argument.annotation)}" if is_typed else ""
        value = f"{' = ' if is_typed else '='}{_default(default, module)}" if default else ""
        return f"{stars}{argument.arg}{typed}{value}"

    found = [text(*pair) for pair in zip(positional, defaults) if pair[0].arg not in ("self", "cls")]
    if arguments.vararg:
        found.append(text(arguments.vararg, stars="*"))
    elif arguments.kwonlyargs:
        found.append("*")
    found += [text(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return [*found, text(arguments.kwarg, stars="**")] if arguments.kwarg else found


if __name__ == "__main__":
    text = page()
    with open(PAGE, "w", encoding="utf-8") as stream:
        stream.write(text)
