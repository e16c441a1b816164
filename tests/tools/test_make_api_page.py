"""docs/api.md is what its tool writes from the source."""

import pytest
from pages import text_of

from tools import make_api_page


def test_the_page_is_up_to_date():
    assert text_of("docs/api.md") == make_api_page.page(), "Run: python tools/make_api_page.py"


def test_a_signature_is_as_in_the_source():
    def function(a, b: "int" = 2, *rest: str, c, d: dict[str, int] | None = None, **others) -> list[int]:
        """..."""

    expected = "function(a, b: int = 2, *rest: str, c, d: dict[str, int] | None = None, **others) -> list[int]"
    assert make_api_page.signature(function) == expected


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("Args:\n    a, b: two\n        lines.\n    c: one.", "Args:\n\n- `a`, `b`: two lines.\n- `c`: one."),
        ("Returns: a list.", "Returns: a list."),
        ("Returns:\n    a list,\n    or none.", "Returns: a list, or none."),
        ("Example:\n    one(\n        1)\n", "```python\none(\n    1)\n```"),
    ],
)
def test_a_section_of_a_docstring(section, expected):
    def function():
        pass

    function.__doc__ = f"Text.\n\n{section}"
    text, sections = make_api_page._parsed(function)
    assert text == "Text."
    assert [make_api_page._section(*each) for each in sections] == [expected]
