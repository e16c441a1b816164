"""The span boundary objective against a reference in NumPy, and where its weights are stored."""

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from command_line import output_of
from scipy.special import erf
from tiny import VOCABULARY, pretraining_batch, random_weights, without_dropout

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.layers.heads import MOST_PLACES, span_places
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.training.step import Step

TERMS = ("mlm", "sbo")


@pytest.fixture(scope="module")
def model():
    model = BertForPreTraining(without_dropout(max_position_embeddings=48), span_boundary=True)
    random_weights(model)
    model.nsp_head.trainable = model.encoder.pooler.trainable = False  # As in a run without pairs.
    return model


@pytest.fixture(scope="module")
def batch():
    """Two rows: spans of 1, 3 and 2 tokens and two entries unused; and one of 24, more than there are embeddings."""
    rng = np.random.default_rng(0)
    batch = pretraining_batch(without_dropout(), batch=2, seq=48)
    batch["input_mask"][:] = 1
    batch["masked_lm_ids"] = rng.integers(5, 60, (2, 24)).astype("int32")
    batch["input_word_ids"] = rng.integers(5, 60, (2, 48)).astype("int32")
    first = [2, 5, 6, 7, 46, 47]
    positions = np.array([[*first, *[0] * 18], range(10, 34)], "int32")
    weights = (np.arange(24) < np.array([[5], [24]])).astype("float32")
    return {**batch, "masked_lm_positions": positions, "masked_lm_weights": weights}


def test_places_in_spans():
    positions = np.array([[1, 2, 3, 9, 20, 21, 0, 0], [4, 0, 0, 0, 0, 0, 0, 0], [0] * 8], "int32")
    left, right, place = (np.asarray(values) for values in span_places(tf.constant(positions)))
    assert left[0, :6].tolist() == [0, 0, 0, 8, 19, 19] and left[1, 0] == 3
    assert right[0, :6].tolist() == [4, 4, 4, 10, 22, 22] and right[1, 0] == 5
    assert place[0, :6].tolist() == [0, 1, 2, 0, 0, 1] and place[1, 0] == 0
    assert left.min() >= 0


def _loss(model, tensors, batch):
    """SpanBERT's objective in NumPy, span by span, from the encoder's output: (sum of the losses, how many)."""
    states = model.encoder(batch)["sequence_output"].numpy().astype(np.float64)

    def gelu(x):
        return x * 0.5 * (1 + erf(x / np.sqrt(2)))

    def norm(x, number):
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-12)
        name = f"keras_bert.span_boundary.LayerNorm_{number}"
        return x * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    total, count = 0.0, 0
    for row, positions, ids, weights in zip(
        states, batch["masked_lm_positions"], batch["masked_lm_ids"], batch["masked_lm_weights"]
    ):
        chosen = positions[: int(weights.sum())].tolist()
        label = dict(zip(chosen, ids))
        for span in np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1):
            for place, position in enumerate(span[:MOST_PLACES]):
                inside = tensors["keras_bert.span_boundary.position_embeddings"][place]
                x = np.concatenate([row[span[0] - 1], row[span[-1] + 1], inside])
                for number in (0, 1):
                    name = f"keras_bert.span_boundary.dense_{number}"
                    x = norm(gelu(x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]), number)
                logits = x @ tensors["bert.embeddings.word_embeddings.weight"].T
                logits = logits + tensors["keras_bert.span_boundary.bias"]
                total += np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[label[position]]
                count += 1
    return total, count


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    write_model_folder(folder, model, VOCABULARY, True)
    return folder


def test_the_loss_is_that_of_a_reference(model, batch, folder):
    """Computed from the tensors in the file, so their names and orientation are right too."""
    # The last span of the first row is cut by its weights, as the objective's weights are: use those that count.
    batch = {**batch, "masked_lm_positions": batch["masked_lm_positions"].copy()}
    batch["masked_lm_positions"][0, 5:] = 0
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    expected, count = _loss(model, tensors, batch)
    objective = PretrainingObjective(VOCABULARY.mask_id, terms=TERMS)
    sums, counts = objective.sums(model(batch), batch), objective.counts(batch)
    assert float(counts["sbo"]) == count == 5 + MOST_PLACES < float(counts["mlm"]) == 29
    np.testing.assert_allclose(sums["sbo"]["loss"], expected, rtol=1e-5)
    # Compiled, as for a TPU.
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    compiled = tf.function(lambda batch: objective.sums(model(batch), batch), jit_compile=True)(tensors)
    np.testing.assert_allclose(compiled["sbo"]["loss"], expected, rtol=1e-5)


def test_the_gradient_reaches_every_weight_of_the_head(model, batch):
    objective = PretrainingObjective(VOCABULARY.mask_id, terms=TERMS)
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    step = Step(tf.distribute.get_strategy(), model, objective)
    gradients, _ = step.gradients(tensors, objective.counts(tensors), tf.constant([1, 2], tf.uint32))
    variables = model.trainable_variables
    found = {
        variable.path: bool(np.any(gradient))
        for variable, gradient in zip(variables, gradients, strict=True)
        if "sbo_head" in variable.path
    }
    assert len(found) == 10 and all(found.values())


def test_inspect_names_the_head(folder):
    output = output_of("inspect", folder)
    assert "Parts: encoder, pooler, masked LM head, next sentence head, span boundary head.\n" in output


def test_the_weights_are_stored_and_read_again(model, batch, folder):
    stored = safetensors.numpy.load_file(folder / "model.safetensors")
    own = {name: value.shape for name, value in stored.items() if name.startswith("keras_bert.")}
    assert own == {
        "keras_bert.span_boundary.dense_0.weight": (16, 2 * 16 + 200),
        "keras_bert.span_boundary.dense_0.bias": (16,),
        "keras_bert.span_boundary.LayerNorm_0.weight": (16,),
        "keras_bert.span_boundary.LayerNorm_0.bias": (16,),
        "keras_bert.span_boundary.dense_1.weight": (16, 16),
        "keras_bert.span_boundary.dense_1.bias": (16,),
        "keras_bert.span_boundary.LayerNorm_1.weight": (16,),
        "keras_bert.span_boundary.LayerNorm_1.bias": (16,),
        "keras_bert.span_boundary.position_embeddings": (20, 200),
        "keras_bert.span_boundary.bias": (60,),
    }
    again = BertForPreTraining(model.config, span_boundary=True)
    report = open_model_folder(folder).load_into(again)
    assert not report.made_new and not report.unused
    for name, value in model(batch).items():
        assert np.array_equal(value, again(batch)[name]), name
    rebuilt = BertForPreTraining.from_config(model.get_config())
    assert rebuilt.sbo_head is not None and rebuilt.sop_head is None
