"""English prose that comes with every Python installation: the demo's text, without a download.

The language reference (`pydoc_data/topics.py`) and the standard library's docstrings, read from the source files with
`ast`. Nothing is imported.
"""

import ast
import os
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from itertools import chain

from keras_bert.core.errors import UserError
from keras_bert.data.windows import groups
from keras_bert.text.sentences import split_sentences

# In characters. A file with less text has little more than the summaries of a few functions. Longer texts are divided
# between paragraphs into documents of `PASSAGE`, so that there are enough documents to hold some out.
SHORTEST_DOCUMENT = 400
PASSAGE = 4_000

_LEFT_OUT_FOLDERS = frozenset(
    """test tests idle_test idlelib lib2to3 turtledemo site-packages dist-packages __pycache__ _bundled
    pydoc_data""".split()
)
_TOPICS = os.path.join("pydoc_data", "topics.py")
_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

_FEWEST_WORDS = 5
_SMALLEST_WORD_SHARE = 0.7
_WORD = re.compile(r"""["'(]?[A-Za-z]+(?:['’-][A-Za-z]+)*["')]?[,.;:!?]*["')]?\Z""")
# A line of symbols (underline, table), a doctest, a grammar rule or a signature.
_NOT_PROSE_LINE = re.compile(
    r"\s*(?:[^\w\s]{3,}|[|+]|>>>|\.\.\. |\.\. |:\w+|@\w)"
    r"|.*::="
    r"|\s*[\w.]+\(.*\)\s*(?:->.*)?:?\s*\Z"
)
_LIST_ITEM = re.compile(r"\A\s*(?:[-*•o]|\(?\d{1,2}[.)]|\(\w\))\s+")
_MARKUP = (
    (re.compile(r":[\w:-]+:`~?\.?([^`<]+?)(?:\s*<[^`]*>)?`"), r"\1"),  # :func:`name`
    (re.compile(r"``([^`]+)``|`([^`']+)['`]_{0,2}"), r"\1\2"),
    (re.compile(r"(?<![\w*])\*{1,2}([A-Za-z_][^*\n]{0,60}?)\*{1,2}(?![\w*])"), r"\1"),  # *name*, **name**
    (re.compile(r'"([\w.]+(?:\(\))?)"'), r"\1"),
    (re.compile(r"\s?\[\w{1,12}\]_?(?=[\s.,;:)]|\Z)"), ""),  # footnotes
    (re.compile(r"::(?=\s|\Z)"), ":"),
)


def python_documentation() -> Iterator[str]:
    """Iterates over the documents: first the language reference by topic, then the source files by path.

    A long topic or file gives several documents. Paragraphs are separated by blank lines; duplicates are dropped, so
    documents hardly overlap. The order is fixed for one installation.

    Yields:
        One string per document, of at least `SHORTEST_DOCUMENT` characters.

    Raises:
        UserError: the installation has no source files.
    """
    library = sysconfig.get_path("stdlib")
    seen: set[str] = set()
    found = False
    for texts in _sources(library):
        for passage in groups(_unseen(texts, seen), len, PASSAGE):
            if sum(map(len, passage)) >= SHORTEST_DOCUMENT:
                found = True
                yield "\n\n".join(passage)
    if not found:
        raise UserError(
            f"{library}: needs the standard library's source files. Received: none in this Python installation. "
            "Give your own text with --data."
        )


def _unseen(texts: Iterable[str], seen: set[str]) -> Iterator[str]:
    """The paragraphs of running text that are not in `seen`, to which they are added."""
    for paragraph in chain.from_iterable(map(prose_paragraphs, texts)):
        if paragraph not in seen:
            seen.add(paragraph)
            yield paragraph


def prose_paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of running text in a docstring or topic, without markup, each on one line."""
    block: list[str] = []
    for line in [*cleandoc(text).expandtabs().split("\n"), ""]:
        ends_block = not line.strip() or _NOT_PROSE_LINE.match(line)
        if block and (ends_block or _LIST_ITEM.match(line)):
            paragraph = _running_text(" ".join(block))
            if paragraph:
                yield paragraph
            block = []
        if not ends_block:
            block.append(_LIST_ITEM.sub("", line, count=1))


def _running_text(text: str) -> str:
    """`text` without markup and without a last sentence that introduces an example; empty if it is not prose."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    sentences = split_sentences(" ".join(text.split()))
    if sentences and sentences[-1][-1] == ":":
        sentences.pop()
    text = " ".join(sentences)
    words = text.split()
    plain = sum(_WORD.match(word) is not None for word in words)
    if len(words) < _FEWEST_WORDS or plain < _SMALLEST_WORD_SHARE * len(words) or text[-1] not in ".!?)\"'":
        return ""
    return text


def _sources(library: str) -> Iterator[list[str]]:
    """Yields the list of texts of each document: one topic, or all docstrings of a file in order."""
    for topic in _topics(os.path.join(library, _TOPICS)):
        yield [topic]
    for folder, folders, names in os.walk(library):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT_FOLDERS)
        for name in sorted(names):
            if name.endswith(".py"):
                yield _docstrings(_parse(os.path.join(folder, name)))


def _topics(path: str) -> list[str]:
    """The values of the dictionary `topics`, sorted by key."""
    for node in _parse(path).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            topics = ast.literal_eval(node.value)
            return [topics[key] for key in sorted(topics)]
    return []


def _docstrings(tree: ast.Module) -> list[str]:
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        # Expressions have no docstrings.
        nodes += [child for child in ast.iter_child_nodes(node) if isinstance(child, _STATEMENTS)]
    documented = [node for node in nodes if isinstance(node, _DOCUMENTED)]
    documented.sort(key=lambda node: getattr(node, "lineno", 0))
    return [text for node in documented if (text := ast.get_docstring(node, clean=False))]


def _parse(path: str) -> ast.Module:
    """The syntax tree of a source file; an empty one if the file is missing or not valid Python."""
    try:
        with open(path, "rb") as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(stream.read())
    except (OSError, SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
