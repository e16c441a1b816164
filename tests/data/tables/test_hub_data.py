"""`hf:datasets/…` on a server that behaves like the hub: which files make a split, and what every failure reports."""

import io

import huggingface_hub.constants
import pytest
from hub_server import Repository, forget_sessions, hub_server, own_cache, point_to

from keras_bert.core.errors import UserError
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.tables.tables import open_table, read_table

arrow = pytest.importorskip("pyarrow", reason="the extra datasets is not installed")
NAME = "datasets/someone/reviews"
README = b"""---
configs:
- config_name: plain
  default: true
  data_files:
  - split: train
    path: data/part-*
  - {split: unsupervised, path: [more.jsonl]}
- {config_name: french, data_dir: fr}
---
# Reviews
"""


def parquet(*texts):
    import pyarrow.parquet

    stream = io.BytesIO()
    pyarrow.parquet.write_table(arrow.table({"text": texts, "label": [1] * len(texts)}), stream)
    return stream.getvalue()


def lines(*texts):
    return "".join(f'{{"text": "{text}"}}\n' for text in texts).encode()


DESCRIBED = {
    "README.md": README,
    "data/part-00000-of-00002.parquet": parquet("a", "b"),
    "data/part-00001-of-00002.parquet": parquet("c"),
    "more.jsonl": lines("d"),
    "fr/train.csv": b"text\ne\n",
    "fr/test.csv": b"text\nf\n",
}
# As most data sets are, and the hub's own copies of those that a script makes.
NAMED = {
    "data/train-00000-of-00001.parquet": parquet("a"),
    "data/validation-00000-of-00001.parquet": parquet("b"),
    "test.jsonl": lines("c"),
    "dataset_infos.json": b"{}",
    "load.py": b"",
}
FOLDERS = {f"{config}/{split}/0000.parquet": parquet(config, split) for config in "xy" for split in ("train", "test")}


@pytest.fixture
def hub(tmp_path, monkeypatch):
    own_cache(str(tmp_path / "cache"), monkeypatch)
    with hub_server() as server:
        point_to(server.url, monkeypatch)
        yield server


def put(hub, files):
    hub.repositories[NAME] = Repository(files)
    return hub.repositories[NAME]


def texts(entry=""):
    return [row.cells[0] for row in read_table(f"hf:{NAME}{entry}", ["text"])]


def refusal(entry=""):
    with pytest.raises(UserError) as refused:
        texts(entry)
    message = str(refused.value)
    assert message.startswith("hf:") and "\n" not in message
    return message


def test_the_readme_says_which_files_make_a_split(hub):
    put(hub, DESCRIBED)
    assert texts() == texts(":train") == texts("/plain:train") == ["a", "b", "c"]
    assert "fr/train.csv" not in hub.fetched() and "more.jsonl" not in hub.fetched()
    assert texts(":unsupervised") == ["d"] and texts("/french") == ["e"] and texts("/french:test") == ["f"]
    assert "It has french, plain, and holds README.md" in refusal("/german")
    assert "needs a split 'dev' of files that are read here. It has train, unsupervised" in refusal(":dev")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("*.jsonl", ["top", "pre"]),
        ("train.jsonl", ["top"]),
        ("en/*.jsonl", ["en"]),
        ("en/**", ["en", "raw"]),
        ("**/train.jsonl", ["top", "en", "raw"]),
        ("*/*/train.jsonl", ["raw"]),
        ("**/*.jsonl", ["top", "pre", "en", "raw"]),
    ],
)
def test_a_star_in_the_readme_stays_within_a_folder(hub, path, found):
    """`en/*.jsonl` would take the files of `en/raw` too, and `**/train.jsonl` take `pretrain.jsonl`."""
    names = {"top": "train", "pre": "pretrain", "en": "en/train", "raw": "en/raw/train", "hidden": ".old/train"}
    readme = f"---\nconfigs:\n- {{config_name: default, data_files: '{path}'}}\n---\n".encode()
    put(hub, {"README.md": readme, **{f"{name}.jsonl": lines(text) for text, name in names.items()}})
    assert sorted(texts()) == sorted(found)


@pytest.mark.parametrize("files", [{"README.md": b"# Only text"}, {"README.md": b"---\nconfigs: [\n---\n"}, {}])
def test_without_it_the_names_say(hub, files):
    put(hub, {**NAMED, **files})
    assert texts() == ["a"] and texts(":validation") == ["b"] and texts(":test") == ["c"]
    put(hub, FOLDERS | files)
    assert texts("/y:test") == ["y", "test"]
    assert "needs one of its configurations. It has x, y, and holds" in refusal()


def test_a_single_split_needs_no_name_and_a_script_is_not_run(hub):
    put(hub, {"reviews.csv": b"text\na\n"})
    assert texts() == ["a"]
    put(hub, {"README.md": b"", "load.py": b"raise"})
    assert "or its copy in Parquet: @refs/convert/parquet" in refusal()


def test_a_commit_names_the_same_rows_and_is_not_asked_for_twice(hub):
    """A resumed run must notice that the data set has changed, and a worker must find the files by name."""
    repository = put(hub, DESCRIBED)
    commit = repository.refs["main"]
    assert open_table(f"hf:{NAME}").name == f"hf:{NAME}@{commit}:train"
    corpus = Corpus([f"hf:{NAME}"])
    assert list(corpus.documents()) == ["a", "b", "c"]
    file = "data/part-00000-of-00002.parquet"
    assert corpus.fingerprint()[0][:2] == [f"hf:{NAME}@{commit}/{file}", len(DESCRIBED[file])]
    fetched = hub.fetched()
    repository.publish({"reviews.csv": b"text\nnew\n"})
    assert texts(f"@{commit}") == ["a", "b", "c"] and hub.fetched() == fetched
    assert texts() == ["new"]


def test_bytes_that_are_not_those_listed_are_refused(hub):
    """The hub's own library compares only sizes."""
    repository = put(hub, NAMED)
    file = "data/train-00000-of-00001.parquet"
    repository.sent_instead[file] = NAMED[file][:-1] + b"?"
    assert f"{file.rpartition('/')[2]} does not match its hash on the hub" in refusal()
    repository.sent_instead.clear()
    assert texts() == ["a"]


def test_offline_the_cache_is_enough_if_it_has_all_of_the_split(hub, monkeypatch, caplog):
    """Otherwise half of a corpus would be trained on silently."""
    put(hub, DESCRIBED).cuts["data/part-00001-of-00002.parquet"] = [0] * 20
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    assert "data/part-00001-of-00002.parquet: could not be fetched" in refusal()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    forget_sessions()
    assert "1 of its 2 files are in the cache, and the hub cannot be reached (HF_HUB_OFFLINE is set)" in refusal()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    forget_sessions()
    hub.repositories[NAME].cuts.clear()
    texts()
    hub.is_down = True
    assert texts() == ["a", "b", "c"] and "from the cache, commit" in caplog.text


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("hf:someone/reviews", "needs the form hf:datasets/ORG/NAME"),
        ("hf:datasets/someone/none", "the hub has no such data set, or it is private"),
        (f"hf:{NAME}@nothing", "the data set has no revision 'nothing'"),
        (f"hf:{NAME}", "is gated. Request access on http"),
    ],
)
def test_what_the_hub_does_not_give_is_named(hub, entry, told):
    put(hub, NAMED).access = "gated" if "gated" in told else "open"
    with pytest.raises(UserError, match=f"^{entry}: .*{told}"):
        next(read_table(entry, ["text"]))
