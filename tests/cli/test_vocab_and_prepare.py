"""`run.py vocab` and `run.py prepare`: what they write, say and refuse."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from corpus import write_corpus

from keras_bert.cli import main
from keras_bert.data.shards.prepare import is_prepared
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").touch()
    return write_corpus(tmp_path / "text.txt")


def run(*arguments, status=0):
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == status, result.output
    return result.output


def test_a_vocabulary_of_the_size_asked_for(text):
    output = run("vocab", "--input", "*.txt", "--size", "90", "--unused", "4", "--output", "new/vocab")
    vocabulary = Vocabulary.from_file("new/vocab")
    assert len(vocabulary) == 90 and vocabulary.tokens[:6] == [*SPECIAL_TOKENS, "[unused0]"]
    assert "90 pieces, rows 5 to 8 unused." in output and "skipped: empty.txt (empty)" in output
    assert "Next: python run.py prepare --input '*.txt' --vocab new/vocab" in output


def test_fewer_rows_are_explained(text):
    assert "fewer than 5,000, because no other pieces occur" in run(
        "vocab", "--input", text, "--size", "5000", "--output", "v.txt"
    )


def test_cased(text):
    run("vocab", "--input", text, "--size", "90", "--cased", "--output", "v.txt")
    assert "The" in Vocabulary.from_file("v.txt").ids


def test_extend(text):
    Vocabulary([*SPECIAL_TOKENS, "[unused0]", "[unused1]", "the", "."]).to_file("base.txt")
    output = run("vocab", "--input", text, "--extend", "base.txt", "--output", "v.txt")
    assert "2 new words in [unused] rows, the most frequent in (" in output
    assert Vocabulary.from_file("v.txt").tokens[5] == "in"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "either --size"),
        (["--size", "90", "--extend", "vocab.txt"], "either --size"),
        (["--extend", "vocab.txt", "--unused", "3"], "--unused goes with --size"),
        (["--size", "90", "--output", "text.txt"], "text.txt: exists already"),
        (["--size", "6"], "needs at least"),
        (["--size", "90", "--input", "nothing*"], "No file matches 'nothing*'"),
        (["--extend", "text.txt"], "text.txt: needs a"),
    ],
)
def test_what_vocab_refuses(text, arguments, told):
    before = open(text, encoding="utf-8").read()
    output = run("vocab", "--input", text, "--output", "v.txt", *arguments, status=2)
    assert told in output and "Traceback" not in output
    assert open(text, encoding="utf-8").read() == before


def test_prepare_writes_a_folder_and_tells_what_was_in_it(text):
    run("vocab", "--input", text, "--size", "90", "--cased", "--output", "vocab")
    write_corpus(Path("again.txt"), 50)
    options = ["--cased", "--validation-share", "0.2", "--shard-megabytes", "0.01"]
    output = run("prepare", "--input", "*.txt", "--vocab", "vocab", "--output", "out", *options)
    assert is_prepared("out")
    train = ShardSet.open("out/train", Vocabulary.from_file("vocab"))
    assert train.meta["lower_case"] is False and not train.has_word_marks and len(train.names) > 1
    for told in (
        f"train: {train.meta['documents']:,} documents, {train.meta['sentences']:,} sentences",
        "[UNK]: 0.000%",
        "dropped: 50 documents (duplicate), ",
        "skipped: empty.txt (empty)",
        "pretrain --config wiki_mini --data out --set model.vocab_size=90",
    ):
        assert told in output


def test_prepare_marks_chinese_words_on_request(text):
    pytest.importorskip("jieba")
    run("vocab", "--input", text, "--size", "90", "--output", "v.txt")
    run("prepare", "--input", text, "--vocab", "v.txt", "--output", "out", "--whole-words", "jieba")
    assert ShardSet.open("out/train").has_word_marks


def test_what_prepare_refuses(text):
    run("vocab", "--input", text, "--size", "90", "--output", "v.txt")
    for arguments, told in (
        (["--output", "."], ".: needs a new or empty folder"),
        (["--output", "out", "--vocab", text], "text.txt: needs a"),
        (["--output", "out", "--input", "nothing*"], "No file matches"),
        (["--output", "out", "--validation-share", "1"], "is not in the range"),
    ):
        output = run("prepare", "--input", text, "--vocab", "v.txt", *arguments, status=2)
        assert told in output and "Traceback" not in output
    assert is_prepared("out") is False
