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
from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig

TEXTS = ["the cat", "a dog, a cat.", "", "Zebras sat: the cat.", "the cat " * 20]
PAIRS = [[first, second] for first in TEXTS[:4] for second in TEXTS[:4]]


@pytest.fixture(scope="module")
def in_sentence_transformers(tmp_path_factory):
    """{name: (our folder, what sentence-transformers made of it)}."""
    room = tmp_path_factory.mktemp("folders")
    folders = {
        "vectors": (write_served(room / "vectors", "single", SentenceVectorsConfig(("score",)), max_length=12), TEXTS),
        "reranker": (write_served(room / "reranker", "pair", RERANKER), PAIRS),
        "regression": (write_served(room / "regression", "pair", HEADS["regression"]), PAIRS),
    }
    kinds = {"vectors": "SentenceTransformer", "reranker": "CrossEncoder", "regression": "CrossEncoder"}
    jobs = [
        {"folder": folder, "kind": kinds[name], "texts": texts, "to": str(room / f"{name}.npz")}
        for name, (folder, texts) in folders.items()
    ]
    jobs.append({**jobs[0], "kind": "AutoModel", "to": str(room / "auto.npz")})
    (room / "jobs.json").write_text(json.dumps(jobs), "utf-8")
    run_peer("of_sentence_transformers_folders.py", "open", room / "jobs.json")
    found = {name: (folder, load_arrays(room / f"{name}.npz")) for name, (folder, _) in folders.items()}
    return {**found, "auto": (folders["vectors"][0], load_arrays(room / "auto.npz"))}


@pytest.mark.live
def test_our_vectors_are_the_same_there(in_sentence_transformers):
    folder, received = in_sentence_transformers["vectors"]
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
    """A CrossEncoder that is told nothing takes the sigmoid of a regression's number."""
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
