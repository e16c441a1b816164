"""CoNLL-U: syntactic words with their UPOS, written again byte for byte except for the predictions."""

import pytest
from written import written

from keras_bert.core.errors import UserError
from keras_bert.tasks.tagging.word_files import ConlluReader


def line(number, form, upos):
    return "\t".join([str(number), form, "_", upos, "_", "_", "_", "_", "_", "SpaceAfter=No"])


TREEBANK = "\n".join(
    [
        "# sent_id = 1",
        "# text = don't go",
        line("1-2", "don't", "_"),
        line(1, "do", "AUX"),
        line(2, "n't", "PART"),
        line("2.1", "gone", "VERB"),
        line(3, "go", "VERB"),
        "",
        "# text = #",
        line(1, "#", "SYM"),
        "",
        "",
    ]
)


def read_conllu(path):
    return ConlluReader(path).whole()


def notes_of(path):
    reader = ConlluReader(path)
    reader.whole()
    return reader.notes()


def relabelled(path, labels, output):
    """Writes the file again with these labels."""
    with open(output, "w", encoding="utf-8", newline="") as stream:
        for tagged in ConlluReader(path).windows():
            stream.writelines(tagged.reader.labelled(tagged, labels))


def test_words_without_multiword_tokens_and_empty_nodes(tmp_path):
    tagged = read_conllu(written(tmp_path / "a", TREEBANK))
    assert tagged.words == ["do", "n't", "go", "#"]
    assert tagged.labels == ["AUX", "PART", "VERB", "SYM"]
    assert tagged.starts.tolist() == [0, 3, 4] and tagged.lines.tolist() == [4, 5, 7, 10]
    assert notes_of(f"{tmp_path}/a") == [
        f"{tmp_path}/a: skipped 1 multiword tokens, whose words are read, and 1 empty nodes."
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_upos_changes_on_writing(tmp_path, end):
    content = TREEBANK.replace("\n", end)
    path = written(tmp_path / "a", content)
    relabelled(path, read_conllu(path).labels, tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == content.encode()
    relabelled(path, ["P1", "P2", "P3", "P4"], tmp_path / "c")
    expected = content.replace("\tAUX", "\tP1").replace("\tPART", "\tP2").replace("\tSYM", "\tP4")
    expected = expected.replace("go\t_\tVERB", "go\t_\tP3")
    assert (tmp_path / "c").read_bytes() == expected.encode()


def test_words_without_upos_are_counted_and_none_at_all_is_no_labels(tmp_path):
    for blank in ("_", "", " "):
        some = read_conllu(written(tmp_path / "a", TREEBANK.replace("PART", blank)))
        assert some.labels == ["AUX", None, "VERB", "SYM"]
        assert "1 words without a UPOS (the first: line 5)" in notes_of(f"{tmp_path}/a")[-1]
    # A blank beside a label is not part of it.
    blank = read_conllu(written(tmp_path / "a", TREEBANK.replace("PART", "PART ")))
    assert blank.labels == ["AUX", "PART", "VERB", "SYM"]
    none = read_conllu(written(tmp_path / "b", "\n".join([line(1, "a", "_"), line(2, "b", "_")])))
    assert none.words == ["a", "b"] and none.labels is None and notes_of(f"{tmp_path}/b") == []


@pytest.mark.parametrize(
    "content, message",
    [
        (line(1, "a", "X") + "\n" + line(3, "b", "X"), "line 2: needs the word number 2 .* Received: '3'"),
        (line(1, "a", "X") + "\n" + line(1, "b", "X"), "line 2: needs the word number 2 .* Received: '1'"),
        (line("x", "a", "X"), "line 1: needs the word number 1"),
        ("1\ta\tX", "line 1: needs 10 cells separated by tabs.* Received: 3"),
        (line(1, "", "X"), "line 1: needs a word in the second cell"),
        ("# nothing\n", "needs sentences in CoNLL-U. Received: none"),
    ],
)
def test_what_is_refused_is_named_with_its_line(tmp_path, content, message):
    with pytest.raises(UserError, match=message):
        read_conllu(written(tmp_path / "a", content))
