"""`prepare` and `vocab` on Apache Beam's local runner, compared with the commands without one."""

import gzip
import json
import os

import pytest
from command_line import output_of
from corpus import documents
from prepared import contents

from keras_bert.core import imports
from keras_bert.core.errors import UserError
from keras_bert.text.vocabulary import Vocabulary

pytest.importorskip("apache_beam", reason="needs Apache Beam: pip install -r requirements/beam.txt")

from keras_bert.data.pipeline.prepare import PrepareWork  # noqa: E402
from keras_bert.data.pipeline.runners import Runner  # noqa: E402
from keras_bert.data.shards.document_tokenizer import DocumentTokenizer  # noqa: E402

RUNNER = ["--runner", "direct", "--workers", "1"]
ONE = ["--runner", "direct", "--", "--direct_num_workers=1"]  # `vocab` has no --workers.
SHARDS = ["--shard-megabytes", "0.002"]
READING = ["--broken-lines", "skip", "--validation-share", "0.2"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Plain text, gzip and JSON lines, with duplicates and an empty file."""
    folder = tmp_path_factory.mktemp("text")
    (folder / "a.txt").write_text("\n\n".join(documents(80)))
    with gzip.open(folder / "b.gz", "wt") as stream:
        stream.write("\n\n".join(documents(80, seed=1)))
    rows = [*documents(30, seed=0), *documents(30, seed=2)]
    (folder / "c.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows) + "{broken\n")
    (folder / "d.txt").touch()
    return folder


@pytest.fixture(scope="module")
def vocabulary(text, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("vocab") / "vocab.txt")
    learn(text, path, "90")
    with open(f"{path}.phrases", "w") as stream:  # To be marked in all prepared text.
        stream.writelines(f"{' '.join(document.split()[:2])}\n" for document in documents(5))
    return path


def learn(text, path, size, *options):
    return output_of("vocab", *READING, "--input", str(text), "--size", size, "--output", str(path), *options)


def prepare(text, vocabulary, folder, *options, status=0):
    marks = ["--phrases", f"{vocabulary}.phrases"]
    paths = ["--input", str(text), "--vocab", vocabulary, "--output", str(folder)]
    return output_of("prepare", *paths, *marks, *SHARDS, *READING, *options, status=status)


@pytest.fixture(scope="module")
def plain(text, vocabulary, tmp_path_factory):
    """What plain `prepare` writes and says."""
    folder = tmp_path_factory.mktemp("plain") / "out"
    output = prepare(text, vocabulary, folder)
    return contents(folder), output.replace(str(folder), "OUT")


def test_prepare_writes_and_says_the_same(text, vocabulary, plain, tmp_path):
    output = prepare(text, vocabulary, tmp_path / "out", *RUNNER)
    assert contents(tmp_path / "out") == plain[0] and len(plain[0]) > 15
    assert output.replace(str(tmp_path / "out"), "OUT") == plain[1]
    assert "in phrases: " in output and any(name.endswith(".phrases") for name in plain[0])
    assert "30 documents (duplicate)" in output and "d.txt (empty)" in output and "not JSON" in output
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_prepare_writes_the_same_into_a_store(text, vocabulary, plain, tmp_path):
    prepare(f"file://{text}", vocabulary, f"file://{tmp_path}/out", *RUNNER)
    assert contents(tmp_path / "out") == plain[0]


@pytest.mark.slow
def test_prepare_in_two_processes_from_another_folder(text, vocabulary, plain, tmp_path, monkeypatch):
    """Workers are separate processes, and must find the package."""
    monkeypatch.chdir(tmp_path)
    prepare(text, vocabulary, tmp_path / "out", "--runner", "direct", "--workers", "2")
    assert contents(tmp_path / "out") == plain[0]


@pytest.fixture
def unreadable(text, tmp_path):
    """The text, with a file in the middle that exists but that even root cannot read."""
    folder = tmp_path / "broken"
    folder.mkdir()
    for path in text.iterdir():
        os.link(path, folder / path.name)
    (folder / "bb.txt").symlink_to("/proc/self/mem")
    return folder


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_file_that_cannot_be_read_is_named_and_finished_work_kept(
    unreadable, vocabulary, plain, tmp_path, monkeypatch, workers
):
    runner = ["--runner", "direct", "--workers", workers]
    output = prepare(unreadable, vocabulary, tmp_path / "out", *runner, status=2)
    assert (
        output
        == f"Error: {unreadable}/bb.txt: cannot be read (Input/output error). Make it readable, or leave it out.\n"
    )
    (unreadable / "bb.txt").unlink()
    finished = {path.name for path in (tmp_path / "out.partial/parts").glob("*.npz")}
    with monkeypatch.context() as patch:
        patch.setattr("apache_beam.Create", None)
        with pytest.raises(AssertionError, match="not callable"):
            prepare(unreadable, vocabulary, tmp_path / "out", *runner)
    assert {path.name for path in (tmp_path / "out.partial/parts").glob("*.npz")} == finished
    prepare(unreadable, vocabulary, tmp_path / "out", *runner)
    assert contents(tmp_path / "out") == plain[0]


def test_a_start_after_a_failure_makes_only_the_rest(text, vocabulary, plain, tmp_path, monkeypatch):
    write_shard = PrepareWork.write_shard

    def full(self, shard):
        if shard.number == 2:
            raise OSError(28, "No space left on device", "/disk/file")
        write_shard(self, shard)

    with monkeypatch.context() as patch:
        patch.setattr(PrepareWork, "write_shard", full)
        output = prepare(text, vocabulary, tmp_path / "out", *RUNNER, status=2)
    assert output == "Error: /disk/file: No space left on device.\n"
    assert not (tmp_path / "out").exists()
    other = prepare(text, vocabulary, tmp_path / "out", status=2)
    assert "unfinished prepare with another runner. Received: 'Beam', now None" in other
    monkeypatch.setattr(DocumentTokenizer, "__call__", None)
    assert "finished parts and shards are kept" in prepare(text, vocabulary, tmp_path / "out", *RUNNER)
    assert contents(tmp_path / "out") == plain[0]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_text_is_filtered_as_without_a_runner(text, vocabulary, tmp_path):
    """`meta.json` also lists what the filters drop."""
    (tmp_path / "words.txt").write_text("horse\n")
    (tmp_path / "web.yaml").write_text("terminal_punctuation: true\nmin_sentences: 4\nrepeated_spans: 1\n")
    filters = ["--filters", str(tmp_path / "web.yaml"), "--bad-words", str(tmp_path / "words.txt")]
    plain = prepare(text, vocabulary, tmp_path / "out", *filters).replace("plain", "out")
    (tmp_path / "out").rename(tmp_path / "plain")
    assert prepare(text, vocabulary, tmp_path / "out", *filters, *RUNNER) == plain
    assert "(bad_words)" in plain and "sentences (repeated_spans)" in plain and "documents (repeated_spans)" in plain
    assert contents(tmp_path / "out") == contents(tmp_path / "plain")
    assert b'"bad_words"' in contents(tmp_path / "out")["train/meta.json"]


def test_the_vocabulary_of_filtered_text_is_the_same(text, tmp_path):
    (tmp_path / "web.yaml").write_text("repeated_spans: 1\n")
    filters = ["--filters", str(tmp_path / "web.yaml")]
    plain = learn(text, tmp_path / "plain.txt", "70", *filters)
    beam = learn(text, tmp_path / "beam.txt", "70", *filters, *ONE)
    assert beam == plain.replace("plain.txt", "beam.txt")
    assert (tmp_path / "beam.txt").read_text() == (tmp_path / "plain.txt").read_text()


def test_a_broken_line_is_named(text, vocabulary, tmp_path):
    output = prepare(text, vocabulary, tmp_path / "out", "--broken-lines", "refuse", *RUNNER, status=2)
    assert "c.jsonl line 61" in output and output.count("\n") == 1


def test_text_without_a_document_leaves_nothing(text, vocabulary, tmp_path):
    output = prepare(text / "d.txt", vocabulary, tmp_path / "out", *RUNNER, status=2)
    assert "d.txt: empty" in output and "without a usable document" in output
    assert list(tmp_path.iterdir()) == []


def test_the_vocabulary_is_the_same(text, vocabulary, tmp_path):
    output = learn(text, tmp_path / "v.txt", "90", *ONE)
    assert (tmp_path / "v.txt").read_text() == open(vocabulary).read()
    assert "d.txt (empty)" in output and [path.name for path in tmp_path.iterdir()] == ["v.txt"]


def test_the_vocabulary_of_more_words_than_the_trainer_reads(text, tmp_path, monkeypatch):
    """Rare words are left out by the pipeline with a runner, and by the trainer without one."""
    monkeypatch.setattr("keras_bert.text.vocabulary_learning.MOST_WORDS", 3000)
    learn(text, tmp_path / "plain.txt", "60")
    learn(text, tmp_path / "beam.txt", "60", *ONE)
    assert Vocabulary.from_file(tmp_path / "beam.txt").tokens == Vocabulary.from_file(tmp_path / "plain.txt").tokens


def test_counts_of_finished_files_are_kept(text, vocabulary, tmp_path, monkeypatch):
    from keras_bert.text import vocabulary_learning

    with monkeypatch.context() as patch:
        patch.setattr("keras_bert.data.pipeline.count_words._CountWork.join", None)
        with pytest.raises(AssertionError, match="not callable"):
            learn(text, tmp_path / "v.txt", "90", *ONE)
    monkeypatch.setattr(vocabulary_learning, "count_words", None)
    assert "counts of finished files are kept" in learn(text, tmp_path / "v.txt", "90", *ONE)
    assert (tmp_path / "v.txt").read_text() == open(vocabulary).read()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--runner direct -- --temp_locatoin=x", "--temp_locatoin: is no option of Apache Beam. Did you mean"),
        ("--runner direct -- project=x", "project=x: is no option of Apache Beam. Give options as --NAME"),
        ("--runner direct -- --runner=Flink", "--runner=Flink: stands among Beam's options"),
        ("--runner direct -- --direct_num_workers=two", "direct_num_workers: invalid int value: 'two'"),
        ("--runner dataflow --workers 2", "--workers 2: counts the processes of --runner direct"),
        ("--runner cloud", "'cloud' is not one of 'direct', 'dataflow', 'spark', 'flink'"),
        ("stray", "unexpected argument (stray)"),
    ],
)
def test_what_is_refused(text, vocabulary, tmp_path, arguments, told):
    output = prepare(text, vocabulary, tmp_path / "out", *arguments.split(), status=2)
    assert told in output and "Traceback" not in output
    assert list(tmp_path.iterdir()) == []


def test_options_of_beam_are_passed_on():
    options = Runner("direct", ["--temp_location=/t", "--direct_num_workers", "3"]).options().get_all_options()
    assert (options["temp_location"], options["direct_num_workers"]) == ("/t", 3)
    assert options["direct_running_mode"] == "in_memory"
    options = Runner("direct", [], 2).options().get_all_options()
    assert (options["direct_num_workers"], options["direct_running_mode"]) == (2, "multi_processing")
    Runner("flink", ["--flink_master=host:8081", "--parallelism=8"])  # The latter is the job server's.


def test_a_bug_in_a_worker_is_no_user_error():
    import apache_beam as beam

    with pytest.raises(ZeroDivisionError), Runner("direct", [], 1).pipeline() as pipeline:
        _ = pipeline | beam.Create([0]) | beam.Map(lambda number: 1 // number)


def test_without_beam_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(imports, "is_installed", lambda package: False)
    with pytest.raises(UserError, match=r"--runner spark: needs the package apache_beam.*'bert-in-keras\[beam\]'"):
        Runner("spark")
