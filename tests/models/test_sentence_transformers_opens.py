"""What is written for sentence-transformers gives the same vectors and scores there, and what it writes, here.

Live: sentence-transformers runs in processes of its own.
"""

import json
import os

import numpy as np
import pytest
from goldens import load_arrays, run_peer
from served import HEADS, RERANKER, write_served

import keras_bert
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig

TEXTS = ["the cat", "a dog, a cat.", "", "Zebras sat: the cat.", "the cat " * 20]
PAIRS = [[first, second] for first in TEXTS[:4] for second in TEXTS[:4]]


ENCODERS = ("encoder", "albert_encoder", "roberta_encoder")  # Golden folders.


def write_vectors(path, init):
    """Writes a model for vectors with the encoder of another folder, for texts of at most 12 tokens."""
    folder, head = open_model_folder(init), SentenceVectorsConfig(("score",))
    model = kind_of_head(head).make_model(folder.config, head)
    folder.load_into(model)
    task = {"task": "pairs-contrastive", "max_length": 12}
    write_model_folder(path, model, folder.vocabulary, **vars(folder.tokenizer), head=head, task=task)
    return path


@pytest.fixture(scope="module")
def in_sentence_transformers(goldens, tmp_path_factory):
    """{name: (our folder, what sentence-transformers made of it)}."""
    room = tmp_path_factory.mktemp("folders")
    cases = {name: (write_vectors(str(room / name), os.path.join(goldens, name)), TEXTS) for name in ENCODERS}
    cases["reranker"] = (write_served(room / "reranker", "pair", RERANKER), PAIRS)
    cases["regression"] = (write_served(room / "regression", "pair", HEADS["regression"]), PAIRS)
    cases["auto"] = cases["encoder"]
    kinds = {"reranker": "CrossEncoder", "regression": "CrossEncoder", "auto": "AutoModel"}
    jobs = [
        {
            "folder": folder,
            "kind": kinds.get(name, "SentenceTransformer"),
            "texts": texts,
            "to": str(room / f"{name}.npz"),
        }
        for name, (folder, texts) in cases.items()
    ]
    (room / "jobs.json").write_text(json.dumps(jobs), "utf-8")
    run_peer("of_sentence_transformers_folders.py", "open", room / "jobs.json")
    return {name: (folder, load_arrays(room / f"{name}.npz")) for name, (folder, _) in cases.items()}


@pytest.mark.live
@pytest.mark.parametrize("name", ENCODERS)
def test_our_vectors_are_the_same_there(in_sentence_transformers, name):
    folder, received = in_sentence_transformers[name]
    assert received["similarity"] == "cosine"
    np.testing.assert_allclose(keras_bert.load(folder).encode(TEXTS), received["found"], atol=1e-5)


@pytest.mark.live
def test_the_scale_of_the_cosines_does_not_disturb_an_auto_model(in_sentence_transformers):
    """The pooler, which these vectors do not need, is all that it lacks."""
    received = in_sentence_transformers["auto"][1]
    assert received["unexpected"].tolist() == ["keras_bert.similarity.log_scale"]
    assert all(name.startswith("pooler.") for name in received["missing"].tolist())


@pytest.mark.live
@pytest.mark.parametrize("name", ["reranker", "regression"])
def test_our_scores_are_the_same_there(in_sentence_transformers, name):
    """By default, a CrossEncoder takes the sigmoid of a regression's number."""
    folder, received = in_sentence_transformers[name]
    expected = keras_bert.load(folder).predict([tuple(pair) for pair in PAIRS])
    np.testing.assert_allclose(expected, received["found"], atol=1e-5)


@pytest.mark.live
def test_its_folders_give_the_same_vectors_here(tmp_path):
    """By every pooling that we have, at the length that it names."""
    encoder = write_served(tmp_path / "encoder", "encoder")
    run_peer("of_sentence_transformers_folders.py", "make", encoder, tmp_path / "theirs")
    names = sorted(os.listdir(tmp_path / "theirs"))
    assert len(names) == 4
    for name in names:
        stored = load_arrays(tmp_path / "theirs" / name / "vectors.npz")
        bert = keras_bert.load(tmp_path / "theirs" / name)
        found = bert.embedder()(stored["texts"].tolist())
        assert found.is_cut.any(), name
        np.testing.assert_allclose(found.vectors, stored["vectors"], atol=1e-5, err_msg=name)
