"""A small data set that TFDS itself writes, read from its folder and by name."""

import numpy as np
import pytest
import tensorflow_datasets as tfds

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.data.corpus.documents import Corpus
from keras_bert.errors import UserError

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


def test_beside_files_and_with_a_fingerprint(folder, tmp_path):
    (tmp_path / "a.txt").write_text("A file.")
    corpus = Corpus([str(tmp_path / "*.txt"), f"tfds:{folder}:test"])
    assert list(corpus.documents())[0] == "A file." and corpus.report.documents == 11
    assert corpus.fingerprint() == [[str(tmp_path / "a.txt"), 7], ["reviews/1.0.0:test", 10]]


def test_a_recipe_takes_it_beside_files_that_are_there(folder, tmp_path):
    """`pretrain --data tfds:NAME` must not look for a file of that name."""
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
        ("tfds:no_such_data_set_at_all", "needs a data set and a split"),
        (f"tfds:{folder}:validation", "needs a data set and a split"),
        (f"tfds:{tmp_path}", "needs a data set and a split"),
        (f"tfds:{numbers}", "needs a text feature"),
        ("tfds:", "needs a data set and a split"),
    ):
        with pytest.raises(UserError, match=told) as error:
            documents(entry)
        assert entry in str(error.value) and "\n" not in str(error.value)
