"""JSON read out of blocks is what `json` reads of the whole, wherever it is cut, its errors too."""

import itertools
import json

import pytest

from keras_bert.data.tables.json_rows import JsonBlocks

CONTENT = {
    "a": [1, -2.5e3, True, None, 'x\n\u4e2d\U0001f408 \\ " {['],
    "empty": {},
    "none": [],
    "b": {"c": [{"d": 12}]},
}


def everything(content):
    """The whole value, objects and lists entered one by one."""
    kind = content.kind()
    if kind == "{":
        return {name: everything(content) for name in content.members()}
    if kind == "[":
        return [everything(content) for _ in content.items()]
    return content.value()


def blocks_of(text, size):
    return (text[start : start + size] for start in range(0, len(text), size))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("indent", [None, 3])
def test_it_is_the_same_wherever_it_is_cut(size, indent):
    text = json.dumps(CONTENT, indent=indent)
    content = JsonBlocks(blocks_of(text, size))
    assert everything(content) == CONTENT
    content.end()
    content = JsonBlocks(blocks_of(f" {text}\n", size))
    assert content.value() == CONTENT and content.kind() == ""


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    "text", ['{"a": [1, 2,\n  x]}', '{"a"\n 1}', '{"a": 1', '{"a": "b', "", '{"a": tru', '[1, "\\q"]']
)
def test_errors_are_told_at_their_place_in_the_whole(size, text):
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    for read in (everything, JsonBlocks.value):
        with pytest.raises(json.JSONDecodeError) as error:
            read(JsonBlocks(blocks_of(text, size)))
        assert (error.value.lineno, error.value.colno) == (expected.value.lineno, expected.value.colno)


def test_what_stands_behind_the_end_is_an_error():
    content = JsonBlocks(["{} ", "\n {}"])
    assert list(content.members()) == []
    with pytest.raises(json.JSONDecodeError, match="Extra data") as error:
        content.end()
    assert (error.value.lineno, error.value.colno) == (2, 2)


def test_a_long_list_is_never_in_memory_as_a_whole():
    """Of a text of millions of characters only what waits is kept."""
    content = JsonBlocks(itertools.chain(['{"data": ['], ('"xxxxxxxxxx", ' for _ in range(200_000)), ['"end"]}']))
    for _ in content.members():
        for _ in content.items():
            value = content.value()
            assert len(content._text) < 1000
    assert value == "end"
