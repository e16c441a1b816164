"""Adversarial training against its definition (Miyato et al. 2017), worked out in NumPy."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from tiny import pretraining_batch, random_model, tiny_config

import keras_bert
from keras_bert.layers.in_training import perturbation, perturbed
from keras_bert.models.pretraining import PretrainingObjective
from keras_bert.training.adversary import adversarial_change
from keras_bert.training.step import Step

SIZE = 0.3
TOTALS = {"loss": tf.constant(2.0)}


class SumOfWords:
    """Scores a row by its words: the sum of their embeddings times a vector."""

    def __init__(self, table, vector):
        self.table, self.vector = tf.Variable(table), tf.Variable(vector)
        self.trainable_variables = [self.table, self.vector]

    def __call__(self, batch, training):
        embedded = perturbed(tf.gather(self.table, batch["input_word_ids"])) * batch["input_mask"][..., None]
        return {"scores": tf.einsum("bsh,h->b", embedded, self.vector)}


class Logistic:
    """The loss log(1 + exp(-label · score)) with labels 1 and -1."""

    terms = ("loss",)

    def sums(self, outputs, batch):
        losses = tf.nn.softplus(-batch["labels"] * outputs["scores"])
        return {"loss": {"loss": tf.reduce_sum(losses)}}


def gradients_of(model, objective, batch, totals, **options):
    step = Step(tf.distribute.get_strategy(), model, objective, **options)
    gradients = tf.function(step.gradients, jit_compile=options.get("jit_compile", False))
    return gradients(batch, totals, tf.constant([1, 2], tf.uint32))


def test_gradients_are_the_mean_of_those_at_the_embeddings_and_at_the_adversarial_ones():
    """The gradient at each of a row's n words is -label · (1 - p) · w, so the change moves each by the same vector:
    along -label · w, of length size · (mean length of the n embeddings) / √n."""
    random = np.random.default_rng(1)
    table, w = (random.normal(0, 0.5, shape).astype(np.float32) for shape in ((9, 4), (4,)))
    ids, mask = np.array([[1, 2, 3, 0], [4, 5, 4, 6]]), np.array([[1, 1, 1, 0], [1, 1, 1, 1]], np.float32)
    labels = np.array([1, -1], np.float32)
    batch = {"input_word_ids": tf.constant(ids), "input_mask": tf.constant(mask), "labels": tf.constant(labels)}
    gradients, sums = gradients_of(SumOfWords(table, w), Logistic(), batch, TOTALS, adversarial=SIZE)

    def by_hand(changed):
        of_table, of_w, losses = np.zeros_like(table), np.zeros_like(w), 0.0
        for row in range(2):
            words = ids[row][mask[row] > 0]
            vectors = table[words]
            if changed:
                length = SIZE * np.linalg.norm(vectors, axis=1).mean()
                vectors = vectors - labels[row] * length / np.sqrt(len(words)) * w / np.linalg.norm(w)
            margin = labels[row] * (vectors @ w).sum()
            factor = -labels[row] / (1 + np.exp(margin)) / 2
            losses += np.log1p(np.exp(-margin))
            of_w += factor * vectors.sum(axis=0)
            np.add.at(of_table, words, factor * w)
        return of_table, of_w, losses

    clean, changed = by_hand(False), by_hand(True)
    assert changed[2] > clean[2] + 0.1
    np.testing.assert_allclose(sums["loss"]["loss"], clean[2], rtol=1e-5)  # What is logged is the texts' own loss.
    for received, one, other in zip(gradients, clean, changed):
        np.testing.assert_allclose(received, (one + other) / 2, rtol=1e-4, atol=1e-6)


def test_of_all_changes_of_that_length_it_raises_the_loss_most():
    model = random_model()
    batch = {name: tf.constant(value) for name, value in pretraining_batch(model.config).items()}
    objective = PretrainingObjective(4)
    totals = objective.counts(batch)

    def loss(change=None):
        with perturbation(change):
            sums = objective.sums(model(batch, training=True), batch)
        return tf.add_n([sums[term]["loss"] / totals[term] for term in objective.terms])

    read = []
    with tf.GradientTape() as tape:
        clean = loss(lambda embeddings: (read.append(embeddings), tape.watch(embeddings), embeddings)[-1])
    (embeddings,) = read
    change = adversarial_change(embeddings, tape.gradient(clean, embeddings), 0.01)
    length = tf.norm(change, axis=(1, 2), keepdims=True)
    worst = loss(functools.partial(tf.add, change))
    random = np.random.default_rng(1)
    for _ in range(20):
        other = tf.constant(random.normal(size=change.shape), tf.float32)
        other = other * length / tf.norm(other, axis=(1, 2), keepdims=True)
        assert abs(loss(functools.partial(tf.add, other)) - clean) < (worst - clean) / 2
    assert worst > clean


def test_padding_and_tiny_gradients_change_nothing():
    """Padding has embeddings too, and the gradients of a confident model are smaller than a float's root."""
    random = np.random.default_rng(2)
    embeddings, gradient = random.normal(size=(2, 2, 5, 4)).astype(np.float32)
    gradient[:, 3:] = 0
    change = adversarial_change(tf.constant(embeddings), tf.constant(gradient), SIZE)
    shorter = adversarial_change(tf.constant(embeddings[:, :3]), tf.constant(gradient[:, :3] * 1e-30), SIZE)
    np.testing.assert_allclose(change[:, :3], shorter, rtol=1e-5)
    np.testing.assert_array_equal(change[:, 3:], 0)
    np.testing.assert_array_equal(adversarial_change(tf.constant(embeddings), tf.zeros((2, 5, 4)), SIZE), 0)


@pytest.mark.parametrize("options", [{"accumulation": 2}, {"parallel": 2}, {"jit_compile": True}])
def test_slices_parts_and_xla_give_the_same_gradients(options):
    """The change is of each row, so the rows that are computed together do not matter."""
    model = random_model(num_hidden_layers=1)
    batch = {name: tf.constant(value) for name, value in pretraining_batch(model.config, batch=8).items()}
    objective = PretrainingObjective(4)
    totals = objective.counts(batch)
    expected, _ = gradients_of(model, objective, batch, totals, adversarial=SIZE)
    received, _ = gradients_of(model, objective, batch, totals, adversarial=SIZE, **options)
    plain, _ = gradients_of(model, objective, batch, totals)
    assert max(abs(one - other).numpy().max() for one, other in zip(expected, plain)) > 1e-3
    for one, other in zip(expected, received, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


ENCODERS = {
    keras_bert.BertEncoder: tiny_config,
    keras_bert.AlbertEncoder: lambda: keras_bert.AlbertConfig(60, 16, 1, 2, 32, embedding_size=8),
    keras_bert.XlnetEncoder: lambda: keras_bert.XlnetConfig(60, 16, 1, 2, 32),
    keras_bert.T5Encoder: lambda: keras_bert.T5Config(60, 16, 1, 2, 32),
    keras_bert.BartEncoder: lambda: keras_bert.BartConfig(60, 16, 1, 2, 32, decoder_attention_heads=2),
    keras_bert.ElmoEncoder: lambda: keras_bert.ElmoConfig(60, 16, 1),
}


@pytest.mark.parametrize("encoder_class", ENCODERS)
def test_every_kind_of_encoder_reads_the_changed_embeddings(encoder_class):
    """If its embeddings are all replaced by zeros, a row's words do not matter."""
    encoder = encoder_class(ENCODERS[encoder_class]())
    ids = np.random.default_rng(3).integers(10, 60, (2, 6))
    inputs = {"input_word_ids": ids, "input_mask": np.ones((2, 6)), "input_type_ids": np.zeros((2, 6))}
    inputs = {name: tf.constant(values, tf.int32) for name, values in inputs.items()}
    first, second = encoder(inputs)["sequence_output"]
    assert abs(first - second).numpy().max() > 1e-3
    with perturbation(tf.zeros_like):
        first, second = encoder(inputs)["sequence_output"]
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_an_encoder_that_would_not_be_changed_is_refused():
    """A kind of model from elsewhere; it would learn each batch twice for nothing."""

    class Deaf(SumOfWords):
        def __call__(self, batch, training):
            return {"scores": tf.reduce_sum(tf.gather(self.table, batch["input_word_ids"]), axis=(1, 2))}

    model = Deaf(np.ones((9, 4), np.float32), np.ones(4, np.float32))
    batch = {"input_word_ids": tf.zeros((1, 2), tf.int32), "labels": tf.ones(1)}
    with pytest.raises(ValueError, match="training.adversarial: needs an encoder that calls `perturbed`"):
        gradients_of(model, Logistic(), batch, TOTALS, adversarial=SIZE)
