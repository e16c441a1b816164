"""Words in columns: what is read, what is refused with its line, and the file written again."""

import gzip
import json
import os
import time

import pytest
from written import written

from keras_bert.core.errors import UserError
from keras_bert.data.corpus.text_lines import read_whole_lines
from keras_bert.tasks.tagging.word_files import ColumnsReader, words_reader

CONLL = (
    "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n \nPeter NNP I-NP I-PER\n\n"
    "-DOCSTART- -X- O O\n\nThe DT I-NP O\n"
)


def read_columns(path, **options):
    return ColumnsReader(path, **options).whole()


def relabelled(path, labels, output, **options):
    """Writes the file again with these labels."""
    left = list(labels)
    with open(output, "w", encoding="utf-8", newline="") as stream:
        for tagged in ColumnsReader(path, **options).windows():
            stream.writelines(tagged.reader.labelled(tagged, left[: len(tagged.words)]))
            del left[: len(tagged.words)]


def test_conlls_file(tmp_path):
    tagged = read_columns(written(tmp_path / "eng.train", CONLL))
    assert tagged.words == ["EU", "rejects", "Peter", "The"]
    assert tagged.labels == ["I-ORG", "O", "I-PER", "O"]
    assert tagged.starts.tolist() == [0, 2, 3, 4] and tagged.sentences == 3
    assert tagged.lines.tolist() == [3, 4, 7, 11]
    assert tagged.place(2).endswith("eng.train line 7")


@pytest.mark.parametrize("label, expected", [(1, "NNP"), (-1, "I-ORG"), (2, "I-NP"), ("ner", "I-ORG"), ("pos", "NNP")])
def test_any_column_by_number_or_by_name(tmp_path, label, expected):
    path = written(tmp_path / "a", f"word pos chunk ner\n{CONLL}" if isinstance(label, str) else CONLL)
    assert read_columns(path, label=label).labels[0] == expected


@pytest.mark.parametrize("names", ["# global.columns = tag word", "tag\tword"])
def test_names_in_the_first_line(tmp_path, names):
    path = written(tmp_path / "a", f"{names}\nX\tone\nY\ttwo\n")
    tagged = read_columns(path, word="word", label="tag")
    assert tagged.words == ["one", "two"] and tagged.labels == ["X", "Y"]
    relabelled(path, ["P", "Q"], tmp_path / "b", word="word", label="tag")
    blank = " " if names.startswith("#") else "\t"
    assert (tmp_path / "b").read_text() == f"{names}{blank}PREDICTED\nX\tone\tP\nY\ttwo\tQ\n"


@pytest.mark.parametrize("names", ["# global.columns = id text tag", "id text tag"])
def test_a_column_named_text_holds_the_words(tmp_path, names):
    """`--text text`, which is also the default, would be read as the first column."""
    path = written(tmp_path / "a", f"{names}\n1 one X\n2 two Y\n")
    assert read_columns(path, label="tag").words == ["one", "two"]
    for first in ("id", 0):
        assert read_columns(path, word=first, label="tag").words == ["1", "2"]


def test_a_number_sign_is_a_word_but_where_the_file_has_comments(tmp_path):
    assert read_columns(written(tmp_path / "a", "# O\n1 O\n")).words == ["#", "1"]
    plus = "# global.columns = w l\n# text = # 1\n# O\n\nb O\n# O\n"
    assert read_columns(written(tmp_path / "b", plus)).words == ["b", "#"]


def test_the_multiword_tokens_of_conllu_plus_are_no_words(tmp_path):
    """They would be words of their own beside those they stand for, and their _ would be a label."""
    content = "# global.columns = ID FORM UPOS\n1-2\tdon't\t_\n1\tdo\tAUX\n2\tn't\tPART\n2.1\tx\t_\n"
    path, options = written(tmp_path / "a", content), {"word": "FORM", "label": "UPOS"}
    tagged = read_columns(path, **options)
    assert (tagged.words, tagged.labels, tagged.sentences) == (["do", "n't"], ["AUX", "PART"], 1)
    relabelled(path, ["A", "B"], tmp_path / "b", **options)
    found = [line.split("\t")[-1] for line in (tmp_path / "b").read_text().splitlines()[1:]]
    assert found == ["_", "A", "B", "_"]
    # Without names, they are words like any others.
    assert read_columns(written(tmp_path / "c", "1-2 X\n")).words == ["1-2"]


def test_cells_between_tabs_may_hold_spaces_and_words_alone_have_no_labels(tmp_path):
    tagged = read_columns(written(tmp_path / "a", "New York\tB-LOC\nis\tO\n"))
    assert tagged.words == ["New York", "is"]
    alone = read_columns(written(tmp_path / "b", "New\nYork\n"), labels_needed=False)
    assert alone.words == ["New", "York"] and alone.labels is None


@pytest.mark.parametrize("names, options", [("", {}), ("w\tl\n", {"word": "w", "label": "l"})])
def test_the_mark_of_a_document_is_neither_a_line_of_words_nor_of_names(tmp_path, names, options):
    """A mark without a tab must not make the words after it split at their blanks."""
    path = written(tmp_path / "a", f"-DOCSTART-\n\n{names}New York\tB-LOC\n")
    tagged = read_columns(path, **options)
    assert (tagged.words, tagged.labels) == (["New York"], ["B-LOC"])
    relabelled(path, ["O"], tmp_path / "b", **options)
    header = names.replace("\n", "\tPREDICTED\n")
    assert (tmp_path / "b").read_text() == f"-DOCSTART-\tO\n\n{header}New York\tB-LOC\tO\n"


def test_a_mark_of_a_document_after_blanks_is_written_with_a_cell(tmp_path):
    """It would have a cell less than the lines of words."""
    relabelled(written(tmp_path / "a", "\ufeff -DOCSTART- O\n\na X\n"), ["Y"], tmp_path / "b")
    assert (tmp_path / "b").read_text(encoding="utf-8") == "\ufeff -DOCSTART- O O\n\na X Y\n"


def test_compressed_with_a_byte_order_mark_and_other_line_ends(tmp_path):
    content = "\ufeffa  X\r\nb Y\r\n\r\nc Z".encode()
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    tagged = read_columns(str(tmp_path / "a.gz"))
    assert tagged.words == ["a", "b", "c"] and tagged.starts.tolist() == [0, 2, 3]
    relabelled(str(tmp_path / "a.gz"), ["1", "2", "3"], tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == "\ufeffa  X 1\r\nb Y 2\r\n\r\nc Z 3".encode()


def test_predictions_are_the_last_column_of_every_line_with_cells(tmp_path):
    relabelled(written(tmp_path / "a", CONLL), ["A", "B", "C", "D"], tmp_path / "b")
    assert (tmp_path / "b").read_text() == (
        "-DOCSTART- -X- O O O\n\nEU NNP I-NP I-ORG A\nrejects VBZ I-VP O B\n\n \nPeter NNP I-NP I-PER C\n\n"
        "-DOCSTART- -X- O O O\n\nThe DT I-NP O D\n"
    )


@pytest.mark.parametrize(
    "content, options, message",
    [
        ("a X\nb\n", {}, "line 2: needs 2 cells, as in the lines before it. Received: 1 in 'b'"),
        ("a X\n\nb Y Z\n", {}, "line 3: needs 2 cells.* Received: 3"),
        ("w p l\na X\n", {"label": "l"}, "line 2: needs 3 cells, one for each column name. Received: 2"),
        ("a\tX\nb\t\n", {}, "line 2: needs a word and its label. Received: 'b"),
        ("a\n", {}, "line 1: needs a column for the words and one for the labels"),
        ("a X\n", {"label": 2}, "line 1: needs a column 2, counted from 0. Received: 2 columns"),
        ("word ner\na X\n", {"label": "nre"}, "line 2: needs a column 'nre'. .* The nearest is 'ner'"),
        ("\n \n", {}, "needs words in columns, one per line. Received: none"),
        ("-DOCSTART- O\n", {}, "needs words in columns"),
        ("a X\0\n", {}, "needs UTF-8 text. Received: binary"),
        ('\n{"tokens":["a"]}\n', {"labels_needed": False}, "line 2: needs words in columns, .* Received: JSON"),
        ('["The", "cat"]\n["A", "dog"]', {"labels_needed": False}, "line 1: needs words in columns, .* Received: JSON"),
    ],
)
def test_what_is_refused_is_named_with_its_line(tmp_path, content, options, message):
    with pytest.raises(UserError, match=f"a{'' if message.startswith('needs') else ' '}(: )?{message}"):
        read_columns(written(tmp_path / "a", content), **options)


def test_whole_lines_may_be_as_long_as_the_file(tmp_path):
    """Each block of 64 KB copied the line so far, which took a minute and a half here."""
    lines = ["a\r", "b\r\n", "word " * 4_000_000 + "\r\n", "c\r", "d"]
    (tmp_path / "a").write_bytes("".join(lines).encode())
    start = time.process_time()
    assert list(read_whole_lines(str(tmp_path / "a"))) == lines
    assert time.process_time() - start < 20


def test_other_encodings_and_missing_files_are_named(tmp_path):
    (tmp_path / "a").write_bytes(b"a X\nb\xe9 Y\n")
    with pytest.raises(UserError, match="a line 2: needs UTF-8 text. Received: .*0xe9"):
        read_columns(str(tmp_path / "a"))
    with pytest.raises(
        UserError, match=r"missing: needs UTF-8 text. Received: cannot be read \(No .*\). Give a file that"
    ):
        read_columns(str(tmp_path / "missing"))
    end, other = os.pipe()
    os.close(other)
    with pytest.raises(UserError, match="Received: a pipe, which can be read only once. Give a file that can be read."):
        read_columns(f"/dev/fd/{end}")
    os.close(end)


def test_windows_of_any_size_are_the_file(tmp_path, monkeypatch):
    """Column names, comments and blanks before a window still count in it."""
    plus = "# global.columns = w l\n" + "".join(f"# text {n}\nw{n} X\n# Y\n\n" for n in range(50)) + "-DOCSTART- O\n"
    path = written(tmp_path / "a", plus)
    whole = read_columns(path)
    relabelled(path, whole.labels, tmp_path / "b")
    for characters in (1, 40, 10**6):
        monkeypatch.setattr("keras_bert.tasks.tagging.tagged_words._CHARACTERS_AT_ONCE", characters)
        found = list(ColumnsReader(path).windows())
        assert (len(found) > 1) == (characters < 10**6)
        assert [word for tagged in found for word in tagged.words] == whole.words
        assert [line for tagged in found for line in tagged.lines.tolist()] == whole.lines.tolist()
        assert sum(tagged.sentences for tagged in found) == whole.sentences == 50
        relabelled(path, whole.labels, tmp_path / "c")
        assert (tmp_path / "c").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("content", ["a\nb\n\nc\n", "a X\nb X\n\nc X\n", "a\tX\nb\t\n\nc\tX\n"])
def test_labels_are_not_needed_where_they_are_to_be_predicted(tmp_path, content):
    reader = ColumnsReader(written(tmp_path / "a", content), labels_needed=False)
    assert [word for tagged in reader.windows() for word in tagged.words] == ["a", "b", "c"]


def test_a_table_with_lists_of_words(tmp_path):
    """Data sets of the hub and of TFDS have them; the answers go back into the same columns."""
    rows = [(["EU", "rejects"], ["B-ORG", "O"]), ([], []), (["Peter"], ["B-PER"])]
    content = "".join(json.dumps({"tokens": words, "tags": labels}) + "\n" for words, labels in rows)
    path, options = written(tmp_path / "a.jsonl", content), {"word": "tokens", "label": "tags"}
    tagged = words_reader(path, **options).whole()
    assert (tagged.words, tagged.labels) == (["EU", "rejects", "Peter"], ["B-ORG", "O", "B-PER"])
    assert tagged.starts.tolist() == [0, 2, 3] and tagged.place(2).endswith("a.jsonl line 3")
    assert words_reader(str(tmp_path / "*"), **options).whole().words == tagged.words
    [window] = words_reader(path, labels_needed=False, **options).windows()
    assert "".join(window.reader.labelled(window, tagged.labels)) == content
    unlabelled = written(tmp_path / "b.jsonl", '{"tokens": ["EU"]}\n')
    assert words_reader(unlabelled, labels_needed=False, **options).whole().labels is None
    uneven = written(tmp_path / "c.jsonl", '{"tokens": ["EU"], "tags": []}\n')
    partly = written(tmp_path / "d.jsonl", '{"tokens": ["EU", "rejects"], "tags": ["B-ORG", null]}\n')
    assert words_reader(partly, labels_needed=False, **options).whole().labels == ["B-ORG", None]
    for bad, told in (
        (unlabelled, "no field 'tags'.* --text and --label"),
        (uneven, "line 1: needs a list of words and"),
        (partly, "line 1: needs a label for each word. Received: 'rejects' without one."),
    ):
        with pytest.raises(UserError, match=told):
            words_reader(bad, **options).whole()
    for given, label in (("NaN", None), ('""', None), ('" "', None), ('" O "', "O"), ("3", "3"), ("true", "True")):
        path = written(tmp_path / "f.jsonl", f'{{"tokens": ["EU", "rejects"], "tags": ["B-ORG", {given}]}}\n')
        assert words_reader(path, labels_needed=False, **options).whole().labels == ["B-ORG", label]
        if label is None:
            with pytest.raises(UserError, match="line 1: needs a label for each word. Received: 'rejects' without"):
                words_reader(path, **options).whole()
    for given, told in (("[1]", "that are text or numbers. Received: \\[1]"), ('"a\\nb"', "without line breaks")):
        path = written(tmp_path / "g.jsonl", f'{{"tokens": ["EU"], "tags": [{given}]}}\n')
        with pytest.raises(UserError, match=f"line 1: needs labels {told}"):
            words_reader(path, **options).whole()
    number = written(tmp_path / "e.jsonl", '{"tokens": 5}\n')
    with pytest.raises(UserError, match="line 1: needs a list of words .* Received: 5 and None"):
        words_reader(number, labels_needed=False, **options).whole()


def test_answers_do_not_replace_the_words_of_a_table(tmp_path):
    """Where the words' column has the name of the labels', only the answers would be written."""
    path, options = written(tmp_path / "a.jsonl", '{"tags": ["EU", "rejects"]}\n'), {"word": "tags", "label": "tags"}
    [window] = words_reader(path, labels_needed=False, **options).windows()
    assert window.words == ["EU", "rejects"] and window.labels is None
    [line] = window.reader.labelled(window, ["B-ORG", "O"])
    assert json.loads(line) == {"tags": ["EU", "rejects"], "answer_tags": ["B-ORG", "O"]}
    with pytest.raises(UserError, match="needs another column than the words. Received: 'tags' for both"):
        words_reader(path, **options).whole()
