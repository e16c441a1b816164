"""TensorFlow Datasets corpora in a pipeline."""

import pytest
from command_line import give
from corpus import documents

from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.tables.tfds import TfdsText
from keras_bert.text.vocabulary_learning import learn_vocabulary

tfds = pytest.importorskip("tensorflow_datasets")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A prepared data set whose training split is stored in three files."""
    builder = tfds.dataset_builders.store_as_tfds_dataset(
        name="stored",
        version="1.0.0",
        data_dir=str(tmp_path_factory.mktemp("tfds")),
        features=tfds.features.FeaturesDict({"text": tfds.features.Text()}),
        split_datasets={
            "train": [(number, {"text": text}) for number, text in enumerate(documents(50))],
            "test": [(number, {"text": text}) for number, text in enumerate(documents(5, seed=1))],
        },
        download_config=tfds.download.DownloadConfig(num_shards=3),
    )
    return builder.data_path


@pytest.mark.parametrize("split", ["train", "test+train[10:40]", "train[20%:]"])
def test_stored_files_hold_the_same_texts_in_the_same_order(folder, split):
    entries = TfdsText(f"tfds:{folder}:{split}").stored_files()
    read = list(Corpus(entries).documents())
    assert read == list(Corpus([f"tfds:{folder}:{split}"]).documents())
    assert len(entries) >= 3


@pytest.mark.slow
def test_prepare_has_tfds_make_a_data_set_with_beam(tmp_path, monkeypatch):
    """C4 and Wikipedia are made this way; plain `prepare` then reads what is stored."""
    pytest.importorskip("apache_beam")
    import beam_corpus  # noqa: F401  This registers its builder.

    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "tfds"))
    monkeypatch.setattr(tfds.core.constants, "DATA_DIR", str(tmp_path / "tfds"))
    learn_vocabulary(documents(60), 90).to_file(tmp_path / "v.txt")

    def prepare(folder, *options):
        arguments = ["--input", "tfds:beam_corpus:train", "--vocab", str(tmp_path / "v.txt"), "--output", str(folder)]
        give("prepare", *arguments, "--shard-megabytes", "0.002", *options)
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    made = prepare(tmp_path / "beam", "--runner", "direct", "--workers", "1")
    assert made == prepare(tmp_path / "plain") and len(made) > 10
