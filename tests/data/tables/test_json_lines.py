"""JSON read from blocks, wherever it is cut, and JSON lines, of which broken ones are refused by name or counted."""

import gzip
import itertools
import json

import pytest

from keras_bert.config.corpus import CorpusConfig
from keras_bert.core.errors import UserError
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.documents import read_documents
from keras_bert.data.tables import json_rows
from keras_bert.data.tables.json_rows import JsonBlocks
from keras_bert.data.tables.rows import Reading

BROKEN = {
    "not JSON": b'{"text": "cut',
    "not UTF-8": b'{"text": "caf\xe9"}',
    "not an object": b'["text"]',
    "no field 'text'": b'{"body": "a", "url": "b"}',
    "'text' is not text": b'{"text": 3}',
    "text with half a surrogate pair": b'{"text": "half \\ud800 a pair"}',
}


def read(path, content, **config):
    path.write_bytes(content)
    report = CorpusReport()
    return list(read_documents([str(path)], report, CorpusConfig(**config))), report


@pytest.mark.parametrize(("reason", "line"), BROKEN.items(), ids=BROKEN.keys())
def test_a_broken_line_is_refused_by_file_and_number(tmp_path, reason, line):
    content = b'{"text": "Good."}\r\n\r\n' + line + b'\n{"text": "Good."}\n'
    with pytest.raises(UserError, match=rf"a.jsonl.gz line 3: needs .* Received: {reason}.*--broken-lines skip"):
        read(tmp_path / "a.jsonl.gz", gzip.compress(content))


def test_broken_lines_are_counted_if_that_is_asked_for(tmp_path):
    lines = [b'{"text": "One."}', *BROKEN.values(), b'{"text": "\\u4e8c\\u3002", "url": "b"}', *BROKEN.values()]
    documents, report = read(tmp_path / "a", b"\n".join(lines), broken_lines="skip")
    assert documents == ["One.", "二。"]
    assert report.broken_lines == dict.fromkeys(BROKEN, 2)
    assert report.first_broken["not UTF-8"] == f"{tmp_path / 'a'} line 3"
    assert "skipped: 2 broken lines (not JSON), the first" in str(report)
    assert report.counts() == {"broken_lines": dict.fromkeys(BROKEN, 2)}


def test_the_name_tells_json_where_the_first_line_is_broken(tmp_path):
    """Taken for plain text, the rest of the JSON would be trained on."""
    content = b'tail of a line"}\n{"text": "One."}'
    assert read(tmp_path / "a.json", content, broken_lines="skip")[0] == ["One."]


def test_another_field(tmp_path):
    content = json.dumps({"text": "title", "content": "One."}).encode()
    assert read(tmp_path / "a", content, text="content")[0] == ["One."]
    with pytest.raises(UserError, match="only 'text', 'content'.*--text COLUMN"):
        read(tmp_path / "a", content, text="body")


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_lines_do_not_depend_on_the_blocks_they_are_read_in(monkeypatch, size):
    """Lines over the limit are broken, and end at their own newline."""
    monkeypatch.setattr(json_rows, "_LONGEST_LINE", 40)  # 12 of these bytes are the JSON around the text.
    lengths = (3, 100, 5, 0, 28, 29, 7, 90)
    content = b"\n".join(b'{"text": "%s"}' % (b"x" * length) for length in lengths)
    report = CorpusReport()
    chunks = (content[start : start + size] for start in range(0, len(content), size))
    found = list(json_rows.json_line_rows("a", chunks, Reading(("text",), skip=report.add_broken_line)))
    assert [row.cells for row in found] == [("x" * length,) for length in lengths if length <= 28]
    assert report.broken_lines.total() == 3 and report.first_broken.popitem()[1] == "a line 2"


def test_several_reports_make_one(tmp_path):
    """Files read separately report the same as when read together."""
    contents = [b"\n".join([b'{"text": "One."}', *BROKEN.values()]), b'{"text": ""}\n{"text": "Two."}\n{"no": 1}']
    parts = [read(tmp_path / f"{n}.json", content, broken_lines="skip")[1] for n, content in enumerate(contents)]
    parts[0].add(parts[1])
    whole = CorpusReport()
    paths = [str(tmp_path / f"{n}.json") for n in range(2)]
    assert len(list(read_documents(paths, whole, CorpusConfig(broken_lines="skip")))) == 2
    assert parts[0] == whole


CONTENT = {
    "a": [1, -2.5e3, True, None, 'x\n\u4e2d\U0001f408 \\ " {['],
    "empty": {},
    "none": [],
    "b": {"c": [{"d": 12}]},
}


def everything(content):
    """The whole value, with objects and lists entered one by one."""
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
    """Of a text of millions of characters, only the unread part of a block is kept."""
    content = JsonBlocks(itertools.chain(['{"data": ['], ('"xxxxxxxxxx", ' for _ in range(200_000)), ['"end"]}']))
    for _ in content.members():
        for _ in content.items():
            value = content.value()
            assert len(content._text) < 1000
    assert value == "end"
