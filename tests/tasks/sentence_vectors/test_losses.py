"""The losses of sentence vectors against NumPy and sentence-transformers, and a run with each."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf
from finetuning import write_tiny_bert
from goldens import load_arrays
from scipy.special import log_softmax

import keras_bert
from keras_bert.config.finetuning import FinetuneConfig, VectorsConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.ensemble import Ensemble
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.sentence_vectors.losses import make_objective
from keras_bert.training.metrics import MetricSums

LOSSES = ("in-batch", "cosine", "cosent", "triplet")
SIZES = [8, 5, 2]
MARGIN = 0.2
each_loss = pytest.mark.parametrize("name", LOSSES)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def cosines(vectors):
    return (vectors[0] * vectors[1]).sum(axis=-1)


def in_batch(vectors, scores):
    first, second, hard = vectors
    to_second = log_softmax(20 * first @ np.concatenate([second, hard]).T, axis=1)
    to_first = log_softmax(20 * second @ first.T, axis=1)
    return -(np.diag(to_second) + np.diag(to_first)).mean() / 2


def cosine(vectors, scores):
    return np.mean((cosines(vectors) - scores) ** 2)


def cosent(vectors, scores):
    found, total = cosines(vectors), 1.0
    for i, low in enumerate(scores):
        for j, high in enumerate(scores):
            total += np.exp(20 * (found[i] - found[j])) if low < high else 0.0
    return np.log(total)


def triplet(vectors, scores):
    first, second, hard = vectors
    to_second, to_hard = (1 - (first * other).sum(axis=-1) for other in (second, hard))
    return np.maximum(0, to_second - to_hard + MARGIN).mean()


BY_HAND = {"in-batch": in_batch, "cosine": cosine, "cosent": cosent, "triplet": triplet}


def objective_of(name, sizes=()):
    margin = {"margin": MARGIN} if name == "triplet" else {}
    return make_objective(VectorsConfig(loss=name, matryoshka=list(sizes), **margin))


def case_of(name, vectors, scores):
    """(outputs, batch) as a model of scale 20 gives them; vectors are [texts, pairs, hidden]."""
    vectors = vectors / tf.norm(vectors, axis=-1, keepdims=True)
    outputs = {
        "logits": tf.reduce_sum(vectors[0] * vectors[1], axis=-1, keepdims=True),
        "anchors": 20.0 * vectors[0],
        "positives": vectors[1],
    }
    texts = 2
    if name in ("in-batch", "triplet"):
        outputs["negatives"], texts = vectors[2][:, None], 3
    count = len(scores)
    ids = np.arange(count * texts * 2, dtype="int32").reshape(count, texts, 2)
    return outputs, {"input_word_ids": ids, "labels": scores, "example_weights": np.ones(count, "float32")}


def figures(objective, *parts):
    sums = MetricSums(objective.terms)
    for outputs, batch in parts:
        sums.add({"sums": objective.sums(outputs, batch), "counts": objective.counts(batch)})
    return sums.take()


@pytest.fixture
def pairs():
    """Vectors [texts, pairs, hidden] and scores, two of them equal."""
    vectors = np.random.default_rng(3).normal(size=(3, 7, 8)).astype("float32")
    return vectors, np.array([0.2, 1.0, 0.6, 0.6, 0.0, 0.9, 0.3], "float32")


@each_loss
def test_a_loss_is_that_of_numpy_also_shortened(name, pairs):
    vectors, scores = pairs
    case, by_hand = case_of(name, *pairs), BY_HAND[name]
    assert figures(objective_of(name), case)["loss"] == pytest.approx(by_hand(unit(vectors), scores), rel=1e-5)
    at_sizes = [by_hand(unit(vectors[..., :size]), scores) for size in SIZES]
    assert figures(objective_of(name, SIZES), case)["loss"] == pytest.approx(np.mean(at_sizes), rel=1e-5)


def test_of_several_negatives_each_counts_the_same(pairs):
    """The accuracy is the share of negatives that are further away than the partner."""
    vectors, scores = pairs
    outputs, batch = case_of("triplet", vectors, scores)
    hard = unit(np.random.default_rng(4).normal(size=(7, 3, 8)).astype("float32"))
    outputs["negatives"] = tf.constant(hard)
    first, second, _ = unit(vectors)
    nearer = (first * second).sum(axis=-1, keepdims=True) - (first[:, None] * hard).sum(axis=-1)
    found = figures(objective_of("triplet"), (outputs, batch))
    assert found["loss"] == pytest.approx(np.maximum(0, MARGIN - nearer).mean(), rel=1e-5)
    assert found["accuracy"] == pytest.approx((nearer > 0).mean(), rel=1e-5)


def test_pairs_to_judge_by_have_no_loss_of_triplets(pairs):
    outputs, batch = case_of("cosine", *pairs)
    assert figures(objective_of("triplet"), (outputs, batch)) == {"loss": 0.0, "accuracy": 0.0}


@pytest.mark.parametrize("name", ["cosine", "cosent", "triplet"])
def test_rows_that_fill_the_batch_change_nothing(name, pairs):
    """Their vectors and scores would change the comparisons of CoSENT."""
    (outputs, batch), count = case_of(name, *pairs), 5
    batch["example_weights"][count:] = 0.0
    kept = tf.nest.map_structure(lambda value: value[:count], (outputs, batch))
    assert figures(objective_of(name), (outputs, batch)) == pytest.approx(figures(objective_of(name), kept), rel=1e-5)
    batch["example_weights"][:] = 0.0
    assert set(figures(objective_of(name), (outputs, batch)).values()) == {0.0}


@pytest.mark.parametrize("name", ["cosine", "triplet"])
def test_slices_add_up_to_the_batch(name, pairs):
    case = case_of(name, *pairs)
    parts = [tf.nest.map_structure(lambda value, part=part: value[part], case) for part in (slice(2), slice(2, None))]
    assert figures(objective_of(name), *parts) == pytest.approx(figures(objective_of(name), case), rel=1e-5)


def test_slices_of_cosent_count_by_their_pairs(pairs):
    """Each slice compares only its own pairs, as the docstring says."""
    vectors, scores = pairs
    case, objective = case_of("cosent", *pairs), objective_of("cosent")
    parts = [tf.nest.map_structure(lambda value, part=part: value[part], case) for part in (slice(2), slice(2, None))]
    expected = 2 * cosent(unit(vectors[:, :2]), scores[:2]) + 5 * cosent(unit(vectors[:, 2:]), scores[2:])
    assert figures(objective, *parts)["loss"] == pytest.approx(expected / 7, rel=1e-5)


def test_without_pairs_to_compare_cosent_and_its_gradients_are_zero(pairs):
    """The logarithm of a sum over nothing would be NaN."""
    vectors, scores = pairs
    given = tf.Variable(vectors)
    with tf.GradientTape() as tape:
        outputs, batch = case_of("cosent", given, np.full_like(scores, 0.5))
        loss = objective_of("cosent").sums(outputs, batch)["loss"]["loss"]
    assert float(loss) == 0.0
    np.testing.assert_array_equal(tf.convert_to_tensor(tape.gradient(loss, given)), np.zeros_like(vectors))


@pytest.mark.parity
@each_loss
@pytest.mark.parametrize("shortened", [False, True])
def test_losses_and_gradients_are_those_of_sentence_transformers(name, shortened, goldens):
    """sentence-transformers adds the losses of the sizes up; ours is their mean."""
    theirs = load_arrays(os.path.join(goldens, "sentence_vectors.npz"))
    key, count = (f"matryoshka/{name}", len(SIZES)) if shortened else (name, 1)
    assert theirs["sizes"].tolist() == SIZES and theirs["margin"] == MARGIN
    texts = theirs[f"gradients/{key}"].shape[0]
    given, objective = tf.Variable(theirs["vectors"]), objective_of(name, SIZES if shortened else ())
    with tf.GradientTape() as tape:
        outputs, batch = case_of(name, given, theirs["scores"])
        loss = objective.sums(outputs, batch)["loss"]["loss"] / objective.counts(batch)["loss"]
    gradients = tf.convert_to_tensor(tape.gradient(loss, given))[:texts]
    np.testing.assert_allclose(loss, theirs[key] / count, rtol=1e-5)
    np.testing.assert_allclose(gradients, theirs[f"gradients/{key}"] / count, rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with train.jsonl and dev.jsonl: pairs with scores from 0 to 5 and a hard negative; and a tiny model."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    for name, count in (("train", 40), ("dev", 12)):
        rows = []
        for number in range(count):
            first, second, hard = (" ".join(f"w{word}" for word in rng.integers(0, 49, 4)) for _ in range(3))
            rows.append({"first": first, "second": second, "hard": hard, "score": number % 6})
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_tiny_bert(folder / "bert")
    return folder


def recipe(tables, vectors, texts=("first", "second"), task="pairs-contrastive", **data):
    return FinetuneConfig.from_mapping(
        {
            "task": task,
            "init": str(tables / "bert"),
            "data": {
                "train": str(tables / "train.jsonl"),
                "dev": str(tables / "dev.jsonl"),
                "texts": list(texts),
                "label": "score",
                **data,
            },
            "vectors": vectors,
            "input": {"max_length": 16},
            "training": {"batch_size": 20, "steps": 2, "accumulation": 2, "evaluate_every": 2},
        }
    )


@pytest.fixture(scope="module")
def shortened(tables):
    """(the folder of a run with `cosine` at two sizes, its results)."""
    config = recipe(tables, {"loss": "cosine", "score_range": [0, 5], "matryoshka": [8, 4]})
    return str(tables / "cosine"), FinetuningRuns(config).one(str(tables / "cosine"))


@pytest.mark.slow
def test_validation_and_evaluate_score_each_size(shortened, tables):
    """By the cosines of `encode`, cut to each size; a run's folder, its model folder and an ensemble agree."""
    folder, results = shortened
    found = results["splits"]["dev"]
    bert = keras_bert.load(folder)
    assert bert.model.config.hidden_size == 16
    rows = [json.loads(line) for line in (tables / "dev.jsonl").read_text().splitlines()]
    first, second = (bert.encode([row[name] for row in rows]) for name in ("first", "second"))
    for size, name in ((None, "spearman"), (8, "spearman_8"), (4, "spearman_4")):
        ranks = [unit(vectors[:, :size]) for vectors in (first, second)]
        order = np.corrcoef(*map(ranked, (cosines(ranks), [row["score"] for row in rows])))[0, 1]
        assert found[name] == pytest.approx(order, abs=1e-3)
    data = {"dev": str(tables / "dev.jsonl"), "texts": ["first", "second"], "label": "score"}
    alone = FinetunedModel(os.path.join(folder, "model"), data)
    ensemble = Ensemble([FinetunedModel(folder), FinetunedModel(folder)])
    for scores in (alone.evaluate("dev"), ensemble.evaluate("dev")):
        assert {name: scores[name] for name in found if "spearman" in name} == pytest.approx(
            {name: value for name, value in found.items() if "spearman" in name}, abs=1e-5
        )


def ranked(values):
    """The ranks of values; equal values share the mean rank."""
    values = np.asarray(values, "float64")
    return (values[:, None] > values).sum(axis=1) + ((values[:, None] == values).sum(axis=1) - 1) / 2


def test_the_card_says_to_which_sizes_vectors_may_be_shortened(shortened):
    card = open(os.path.join(shortened[0], "model", "README.md"), encoding="utf-8").read()
    assert "the first 8 or 4 dimensions" in card and "spearman_4" in card


def test_cosine_takes_all_pairs_and_scores_from_zero_to_one(shortened):
    """Scores from 0 to 5 would give errors of 25; a threshold of `data.positive` would leave out pairs below 4."""
    problem = FinetunedModel(shortened[0]).problem
    rows = problem.rows("train")
    np.testing.assert_allclose(rows.extra["labels"], [number % 6 / 5 for number in range(40)], rtol=1e-6)
    assert "example_weights" not in rows.extra and FinetunedModel(shortened[0]).evaluate("dev")["loss"] < 4


@pytest.mark.slow
@pytest.mark.parametrize("name, texts", [("cosent", 2), ("triplet", 3)])
def test_a_run_trains_with_each_loss_and_leaves_the_scale_as_it_was(name, texts, tables, tmp_path):
    """The scale matters only to the in-batch loss; elsewhere it would drift by the rounding of its gradient."""
    config = recipe(tables, {"loss": name}, ("first", "second", "hard")[:texts])
    folder = str(tmp_path / name)
    assert "spearman" in FinetuningRuns(config).one(folder)["splits"]["dev"]
    bert = keras_bert.load(folder)
    assert float(bert.model.similarity.log_scale.numpy()[0]) == np.float32(np.log(20.0))
    before = keras_bert.load(str(tables / "bert")).encode(["w1 w2"])
    assert np.abs(bert.encode(["w1 w2"]) - before).max() > 0


THREE = ("first", "second", "hard")


@pytest.mark.parametrize(
    "vectors, texts, others, message",
    [
        ({"loss": "cosine"}, THREE[:2], {"label": None}, "cosine needs a score for each pair. Received: none"),
        ({"loss": "cosent"}, THREE[:2], {"label": None}, "cosent needs a score for each pair. Received: none"),
        ({"loss": "cosent"}, THREE[:2], {"positive": 3.0}, "positive: needs a vectors.loss .* Received: cosent"),
        ({"loss": "cosent"}, THREE, {}, "cosent needs two columns of texts. Received: first, second, hard"),
        ({"loss": "triplet"}, THREE[:2], {}, "triplet needs hard negatives .* Received: the columns first, second"),
        ({"loss": "cosine"}, THREE[:2], {}, r"needs scores from 0 to 1. Received: 2. Give the range"),
        (
            {"loss": "cosine", "score_range": [1, 5]},
            ("text",),
            {"train": None, "dev": None, "label": None},
            r"score_range: needs a table of your own, .* Received: \[1.0, 5.0\], for STS-B's scores from 0 to 5",
        ),
        ({"matryoshka": [8, 64]}, THREE[:2], {}, "needs sizes up to the model's width, 16. Received: 64"),
        ({"loss": "cosent"}, ("first",), {"task": "text"}, "vectors: needs a task that trains vectors. Received: text"),
    ],
)
def test_settings_and_data_that_do_not_fit_are_refused(vectors, texts, others, message, tables):
    config = recipe(tables, vectors, texts, **others)
    with pytest.raises(UserError, match=message):
        FinetuningRuns(config).one(str(tables / "refused"))


@pytest.mark.parametrize(
    "vectors, message",
    [
        ({"loss": "cosent", "margin": 0.5}, "vectors.margin: needs vectors.loss=triplet. Received: 'cosent'"),
        (
            {"loss": "cosent", "score_range": [0, 5]},
            "vectors.score_range: needs vectors.loss=cosine. Received: 'cosent'",
        ),
        ({"loss": "cosine", "score_range": [5, 0]}, "vectors.score_range: needs the lowest and the highest score"),
        ({"matryoshka": [4, 4]}, "vectors.matryoshka: needs sizes that differ"),
        ({"matryoshka": [0]}, "matryoshka.* needs a value above 0"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(vectors, message):
    with pytest.raises((UserError, ValueError), match=message):
        FinetuneConfig.from_mapping({"task": "pairs-contrastive", "vectors": vectors})
