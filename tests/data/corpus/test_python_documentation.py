import pytest

from keras_bert.core.errors import UserError
from keras_bert.data.corpus import python_documentation as module
from keras_bert.data.corpus.python_documentation import prose_paragraphs, python_documentation


@pytest.fixture(scope="module")
def documents():
    return list(python_documentation())


def test_there_is_enough_text_for_the_demo(documents):
    assert 400 <= len(documents) <= 700
    assert sum(map(len, documents)) > 1_200_000
    assert min(map(len, documents)) >= module.SHORTEST_DOCUMENT


@pytest.mark.slow
def test_the_order_is_fixed_and_nothing_stands_twice(documents):
    assert list(python_documentation()) == documents
    paragraphs = [paragraph for document in documents for paragraph in document.split("\n\n")]
    assert len(set(paragraphs)) == len(paragraphs)


def test_it_is_prose(documents):
    text = "\n\n".join(documents)
    letters = sum(character.isalpha() or character == " " for character in text)
    assert letters > 0.93 * len(text)
    for mark in (">>>", "``", "::=", "+---", ":func:", "====", "|---"):
        assert mark not in text


DOCSTRING = """open(name, mode='r') -> file

    Opens *name* with the :class:`~io.Mode` given, or ``None``, and returns
    the file that "read()" reads from [1]_.

    Heading
    =======

    >>> open("a")
    <file 'a'>

    - The first item is a sentence, too.
    - x = {1: 2, 3: 4} + [5, 6]; y = f(x)
    o The last item goes on
      over two lines.

    +-----+-----+
    | one | two |
    +-----+-----+

    This function is a good one to call. For example::

        f(1) == g(2)

    .. note:: not this one
    """


def test_what_is_kept_of_a_docstring():
    assert list(prose_paragraphs(DOCSTRING)) == [
        "Opens name with the io.Mode given, or None, and returns the file that read() reads from.",
        "The first item is a sentence, too.",
        "The last item goes on over two lines.",
        "This function is a good one to call.",
    ]


@pytest.fixture
def library(tmp_path, monkeypatch):
    monkeypatch.setattr(module.sysconfig, "get_path", lambda name: str(tmp_path))
    return tmp_path


def test_an_installation_without_source_is_refused(library):
    with pytest.raises(UserError, match="needs the standard library's source files"):
        next(python_documentation())


def test_files_are_read_and_never_run(library):
    prose = "\n\n".join(f"Sentence number {'very ' * n}long is what stands here." for n in range(20))
    (library / "pydoc_data").mkdir()
    (library / "pydoc_data" / "topics.py").write_text(f"raise SystemExit\ntopics = {{'b': '''{prose}'''}}")
    (library / "broken.py").write_text("def (")
    other = prose.replace("Sentence", "Line")
    (library / "b.py").write_text(f"raise SystemExit\nclass A:\n    '''{other}'''")
    (library / "test").mkdir()
    (library / "test" / "c.py").write_text(f"'''{prose.replace('Sentence', 'Test')}'''")
    assert list(python_documentation()) == [prose, other]


def test_definitions_are_found_in_every_kind_of_block(library):
    """Expressions are not read, but a function may stand in any statement."""
    blocks = [
        "if x:",
        "with x:",
        "for x in y:",
        "class A:",
        "async def f():",
        "match x:\n case 1:",
        "try: pass\nexcept:",
    ]
    texts = [
        " ".join(f"Block {'very ' * n}{number} is told of here at length." for n in range(20))
        for number in range(len(blocks))
    ]
    source = "\n".join(f"{block}\n  def g():\n    '''{text}'''" for block, text in zip(blocks, texts, strict=True))
    (library / "blocks.py").write_text(source)
    found = "\n\n".join(python_documentation())
    assert found.split("\n\n") == texts
