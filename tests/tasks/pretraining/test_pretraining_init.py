"""Going on from a folder of another's: `pretrain --init` where heads are missing, and where the format is Google's."""

import os

import numpy as np
import pytest
from click.testing import CliRunner
from corpus import write_corpus
from tiny import random_weights, without_dropout

from keras_bert.checkpoints.conversion import convert_folder
from keras_bert.checkpoints.model_folder import open_model_folder, write_model_folder
from keras_bert.checkpoints.names import ENCODER, MASKED_LM_HEAD
from keras_bert.cli import main
from keras_bert.models.encoder import BertEncoder
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.vocabulary_learning import learn_vocabulary

SETTINGS = [
    "--set", "phases=[{sequence_length: 16, batch_size: 4, max_predictions_per_seq: 3}]", "--steps", "1",
    "--set", "data.validation_share=0.2", "--set", "training.jit_compile=false", "--set", "examples=[]",
    "--set", "optimizer.learning_rate=1e-9", "--set", "training.evaluation_examples=4",
]  # fmt: skip


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """(corpus, a folder of an encoder alone, the same in Google's format)."""
    place = tmp_path_factory.mktemp("init")
    corpus = write_corpus(place / "text.txt", count=60)
    with open(corpus, encoding="utf-8") as stream:
        vocabulary = learn_vocabulary(stream.read().split("\n"), 60)
    encoder = BertEncoder(without_dropout(vocab_size=len(vocabulary)))
    random_weights(encoder)
    folder, google = str(place / "encoder"), str(place / "google")
    write_model_folder(folder, encoder, vocabulary, lower_case=True)
    convert_folder(open_model_folder(folder), "google", google, vocabulary)
    return corpus, folder, google


def pretrain(corpus, init, output, *more):
    arguments = ["pretrain", "--config", "wiki_mini", "--data", corpus, "--init", init, "--output", output]
    return CliRunner().invoke(main, [*arguments, *SETTINGS, *more])


@pytest.mark.slow
def test_heads_that_are_missing_are_listed_and_made_new_from_the_seed(parts, tmp_path):
    """One run from each format; the new heads are the seed's, so that both have the same."""
    corpus, *folders = parts
    runs = [str(tmp_path / name) for name in ("huggingface", "google")]
    listed = ("cls.predictions.transform.dense.weight", "cls/predictions/transform/dense/kernel")
    for folder, run, name in zip(folders, runs, listed, strict=True):
        result = pretrain(corpus, folder, run, "--seed", "7")
        assert result.exit_code == 0, result.output
        assert "and made new: " in result.output and name in result.output
        assert ("taken as uncased" in result.output) is (folder == folders[1])
    first, second = map(open_model_folder, runs)
    given = open_model_folder(folders[0])
    for stored, value in first.read(ENCODER).items():
        np.testing.assert_allclose(value, given.tensors.read(stored), atol=1e-6)  # One step of a tiny rate.
    for stored, value in first.read(MASKED_LM_HEAD).items():
        np.testing.assert_array_equal(value, second.tensors.read(stored), stored.attribute)
    assert Vocabulary.from_file(first.vocabulary_file).tokens == Vocabulary.from_file(given.vocabulary_file).tokens


def test_a_tokenizer_that_shards_cannot_be_made_with_is_refused(parts, tmp_path):
    folder = str(tmp_path / "accented")
    opened = open_model_folder(parts[1])
    encoder = BertEncoder(opened.config)
    vocabulary = Vocabulary.from_file(opened.vocabulary_file)
    write_model_folder(folder, encoder, vocabulary, lower_case=True, strip_accents=False)
    result = pretrain(parts[0], folder, str(tmp_path / "run"))
    assert result.exit_code == 2 and "Received: strip_accents False" in result.output
    assert not os.path.exists(tmp_path / "run")
