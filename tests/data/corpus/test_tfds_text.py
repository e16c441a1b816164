"""A small data set that TFDS writes, read from its folder and by name."""

import http.server
import threading

import numpy as np
import pytest
import tensorflow_datasets as tfds
from click.testing import CliRunner

from keras_bert.config.corpus import CorpusConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core.errors import UserError
from keras_bert.core.files import content_mark
from keras_bert.core.time_limits import any_answers
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.tables import tfds as tfds_builder
from tools import fetch_text

TEXTS = [f"Text number {n}.\n\nIt is short." for n in range(30)]


def store(folder, name, features, rows):
    builder = tfds.dataset_builders.store_as_tfds_dataset(
        name=name,
        version="1.0.0",
        data_dir=str(folder),
        features=tfds.features.FeaturesDict(features),
        split_datasets={"train": list(enumerate(rows[:20])), "test": list(enumerate(rows[20:]))},
    )
    return builder.data_path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    features = {"label": tfds.features.Scalar(np.int64), "title": tfds.features.Text(), "text": tfds.features.Text()}
    rows = [{"label": n, "title": "T", "text": text} for n, text in enumerate(TEXTS)]
    return store(tmp_path_factory.mktemp("tfds"), "reviews", features, rows)


def documents(entry):
    return list(Corpus([entry]).documents())


def test_the_text_feature_in_stored_order(folder):
    read = documents(f"tfds:{folder}")
    assert sorted(read) == sorted(TEXTS[:20]) and read == documents(f"tfds:{folder}:train")
    assert sorted(documents(f"tfds:{folder}:test")) == sorted(TEXTS[20:])
    assert len(documents(f"tfds:{folder}:train[:25%]")) == 5


def test_another_feature_by_name(folder):
    """`--text` must not be only for files."""
    assert set(Corpus([f"tfds:{folder}"], CorpusConfig(text="title")).documents()) == {"T"}
    with pytest.raises(UserError, match="needs a text feature 'body'. Received: .* Name another with --text"):
        next(Corpus([f"tfds:{folder}"], CorpusConfig(text="body")).documents())


def test_beside_files_and_with_a_fingerprint(folder, tmp_path):
    (tmp_path / "a.txt").write_text("A file.")
    corpus = Corpus([str(tmp_path / "*.txt"), f"tfds:{folder}:test"])
    assert list(corpus.documents())[0] == "A file." and corpus.report.documents == 11
    assert corpus.fingerprint() == [
        [str(tmp_path / "a.txt"), 7, content_mark(tmp_path / "a.txt")],
        ["reviews/1.0.0:test", 10],
    ]


def test_a_recipe_takes_it_beside_files_that_are_there(folder, tmp_path):
    """`pretrain --data tfds:NAME` would look for a file of that name."""
    (tmp_path / "a.txt").write_text("A file.")
    PretrainConfig.from_mapping({}, {"data.files": [f"tfds:{folder}", str(tmp_path / "a.txt")]}).require_text()
    with pytest.raises(UserError, match="No file matches"):
        PretrainConfig.from_mapping({}, {"data.files": [f"tfds:{folder}", str(tmp_path / "b.txt")]}).require_text()


def test_the_first_string_where_there_is_no_text(tmp_path):
    features = {"label": tfds.features.Scalar(np.int64), "body": tfds.features.Text()}
    rows = [{"label": n, "body": text} for n, text in enumerate([*TEXTS[:-1], b"\xff"])]
    path = store(tmp_path, "bodies", features, rows)
    corpus = Corpus([f"tfds:{path}:test"])
    assert sorted(corpus.documents()) == sorted(TEXTS[20:-1])
    assert corpus.report.dropped == {"not UTF-8": 1}


def test_what_tfds_cannot_give_is_named(folder, tmp_path):
    numbers = store(tmp_path, "numbers", {"label": tfds.features.Scalar(np.int64)}, [{"label": n} for n in range(30)])
    for entry, told in (
        ("tfds:wikipedias", "no such data set. Did you mean wikipedia?"),
        (f"tfds:{folder}:validation", "needs a split of .*test.*train"),
        (f"tfds:{tmp_path}", "cannot open it"),
        (f"tfds:{numbers}", "needs a text feature"),
        ("tfds:", "cannot open it"),
    ):
        with pytest.raises(UserError, match=told) as error:
            documents(entry)
        assert entry in str(error.value) and "\n" not in str(error.value)


ARTICLE = (
    "Paris is the capital and the most populous city of France, on the river Seine.\n\n"
    "History \nThe Parisii, a tribe of the Celts, inhabited the area from the middle of the third century BC on.\n\n"
    "Climate \n\nParis has an oceanic climate, affected by the North Atlantic Current all through the year.\n\n"
    "See also\nOutline of Paris"
)
DATA_DIR = "tensorflow_datasets.core.constants.DATA_DIR"  # TFDS_DATA_DIR is read only once.
WIKIPEDIA = "wikipedia/20230601.en"


@pytest.fixture(scope="module")
def wikipedia(tmp_path_factory):
    """A folder with Wikipedia as TFDS prepares it."""
    folder = tmp_path_factory.mktemp("wikipedia")
    tfds.dataset_builders.store_as_tfds_dataset(
        name="wikipedia",
        config="20230601.en",
        version="1.0.0",
        data_dir=str(folder),
        features=tfds.features.FeaturesDict({"title": tfds.features.Text(), "text": tfds.features.Text()}),
        split_datasets={"train": [(0, {"title": "Paris", "text": ARTICLE}), (1, {"title": "P", "text": "See also"})]},
    )
    return str(folder)


def test_wikipedia_is_paragraphs_without_headings(wikipedia, monkeypatch):
    """BERT was trained only on the text passages (paper, section 3.1)."""
    monkeypatch.setattr(DATA_DIR, wikipedia)
    [read] = documents(f"tfds:{WIKIPEDIA}")
    paragraphs = read.split("\n\n")
    assert [paragraph.split()[0] for paragraph in paragraphs] == ["Paris", "The", "Paris"] and "also" not in read


def test_a_folder_of_the_same_name_hides_no_data_set(wikipedia, monkeypatch):
    """With TFDS_DATA_DIR as the working folder, or a user's own `conll2003`, TFDS's set would not be opened."""
    monkeypatch.setattr(DATA_DIR, wikipedia)
    monkeypatch.chdir(wikipedia)
    assert len(documents(f"tfds:{WIKIPEDIA}")) == 1


def test_a_data_set_becomes_the_files_of_the_documented_commands(wikipedia, tmp_path, monkeypatch):
    """The README's `--data 'wiki/*'` would name files that no reader has; `make data` makes them."""
    monkeypatch.setattr(DATA_DIR, wikipedia)
    made = CliRunner().invoke(fetch_text.main, [f"tfds:{WIKIPEDIA}", str(tmp_path / "wiki" / "en.jsonl")])
    assert made.exit_code == 0, made.output
    assert documents(str(tmp_path / "wiki" / "*")) == documents(f"tfds:{WIKIPEDIA}")
    refused = CliRunner().invoke(fetch_text.main, ["nothing.txt", str(tmp_path / "x")])
    assert refused.exit_code == 1 and "Error: No file matches 'nothing.txt'" in refused.output
    assert not (tmp_path / "x").exists()


def test_what_takes_hours_to_make_is_looked_for_in_the_public_bucket(wikipedia, tmp_path, monkeypatch):
    """Otherwise every user would spend half a day parsing a dump of 20 GB."""
    monkeypatch.setattr(DATA_DIR, str(tmp_path))
    monkeypatch.setattr(tfds_builder, "BUCKET", wikipedia)
    monkeypatch.setattr(tfds_builder, "any_answers", lambda servers: True)
    assert len(documents(f"tfds:{WIKIPEDIA}")) == 1 and not list(tmp_path.iterdir())


def test_no_network_is_not_a_wrong_name(tmp_path, monkeypatch):
    monkeypatch.setattr(DATA_DIR, str(tmp_path))
    monkeypatch.setattr(tfds_builder, "any_answers", lambda servers: False)
    with pytest.raises(UserError, match="there is no network to fetch it: no answer from .* or files") as error:
        documents(f"tfds:{WIKIPEDIA}")
    assert "\n" not in str(error.value)


def test_what_is_needed_to_make_wikipedia_is_one_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(DATA_DIR, str(tmp_path))
    monkeypatch.setattr(tfds_builder, "any_answers", lambda servers: len(servers) > 1)
    monkeypatch.setattr("keras_bert.core.imports.is_installed", lambda package: package != "mwxml")
    with pytest.raises(UserError, match=r"mwxml, which is not installed.*\[tfds-wikipedia\]"):
        documents(f"tfds:{WIKIPEDIA}")


def test_a_server_that_answers_anything_is_there():
    """A proxy or a bucket may answer 403 or 404 at its root."""

    class NotFound(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_error(404)

        def log_message(self, *arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), NotFound) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        assert any_answers(["http://127.0.0.1:9", address])
        server.shutdown()
    assert not any_answers([address])
