"""The memory of the rows before, from one batch to the next: what a row sees of it, and what becomes of it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from goldens import ENCODER_INPUTS, Golden, under

import keras_bert
from keras_bert.config.training import OptimizerConfig
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.segment_memory import SegmentMemory
from keras_bert.training.step import Step

SEQ, VOCAB, BLOCKS, HIDDEN, ROWS = 10, 30, 2, 16, 3
CONFIG = keras_bert.XlnetConfig(
    VOCAB, HIDDEN, BLOCKS, 2, 32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.4
)
LENGTHS = np.array([[10, 7, 5], [8, 10, 4], [10, 6, 10]])  # Of the rows of three batches.
SEEN = ("input_word_ids", "input_mask", "input_type_ids", "masked_lm_positions", "permutation_ranks")


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return BertForPreTraining(CONFIG, terms=("plm",))


def batch_number(number, goes_on=(1, 1, 1)):
    rng = np.random.default_rng(number)
    lengths, places = LENGTHS[number][:, None], np.arange(SEQ)
    ranks = np.argsort(rng.random((ROWS, SEQ)), axis=1)
    is_context = (places < lengths - 2) & (places % 3 > 0)
    batch = {
        "input_word_ids": rng.integers(9, VOCAB, (ROWS, SEQ)),
        "input_mask": places < lengths,
        "input_type_ids": 2 * (places == lengths - 1),
        "masked_lm_positions": np.array([[0, 3]] * ROWS),
        "permutation_ranks": np.where(is_context | (places >= lengths), -1, ranks),
        "goes_on": np.array(goes_on),
    }
    numbers = {"batch_numbers": tf.fill([ROWS], tf.constant(number, tf.int64))}
    return {**{name: tf.constant(value, tf.int32) for name, value in batch.items()}, **numbers}


def computed(model, memory, batch):
    """The logits of a batch, after which the memory is that for the next."""
    given = memory.with_memory(batch, 0)
    outputs = model(given)
    memory.remember(memory.of_rows(outputs, given, 0), batch)
    return outputs["mlm_logits"].numpy()


@pytest.mark.parametrize("length", [3, 12])
def test_a_row_sees_the_text_before_it_without_a_gap(model, length):
    """Neither padding nor <sep> <cls>, and of as many rows as its length reaches back to."""
    memory = SegmentMemory(ROWS, length, BLOCKS, HIDDEN)
    texts = [[np.zeros([1, 0, HIDDEN], "float32")] * BLOCKS for _ in range(ROWS)]
    for number in range(3):
        batch = batch_number(number)
        found = computed(model, memory, batch)
        for row in range(ROWS):
            end = LENGTHS[number, row]
            alone = {name: batch[name][row : row + 1] for name in SEEN}
            for name in SEEN:
                alone[name] = alone[name] if name == "masked_lm_positions" else alone[name][:, :end]
            if number:
                alone["mems"] = texts[row]
            np.testing.assert_allclose(found[row], model(alone)["mlm_logits"][0], rtol=1e-4, atol=1e-5)
            states = model.encoder({**alone, "mems": texts[row]})["hidden_states"]
            texts[row] = [
                np.concatenate([text, state[:, : end - 2]], axis=1)[:, -length:]
                for text, state in zip(texts[row], states)
            ]


def test_the_first_row_of_a_document_is_as_without_memory(model):
    """Also for a token that sees nothing else, for which the scores of all it might see are the same."""
    memory = SegmentMemory(ROWS, 6, BLOCKS, HIDDEN)
    computed(model, memory, batch_number(0))
    batch = batch_number(1, goes_on=(0, 1, 0))
    batch["permutation_ranks"] = tf.tensor_scatter_nd_update(
        batch["permutation_ranks"], tf.constant([[0], [1]]), tf.tile(tf.range(SEQ)[None], [2, 1])
    )
    given = memory.with_memory(batch, 0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(given["mems"])
        logits = model(given)["mlm_logits"]
        rows = [tf.reduce_sum(logits[row] * tf.range(float(VOCAB))) for row in range(ROWS)]
    without = model({name: batch[name] for name in SEEN})["mlm_logits"]
    for row, sees in enumerate([False, True, False]):
        assert np.allclose(logits[row], without[row], rtol=1e-5, atol=1e-6) is not sees
        slopes = [np.abs(slope).max() for slope in tape.gradient(rows[row], given["mems"])]
        assert all((slope > 0) is np.bool_(sees) for slope in slopes)


def test_after_a_gap_no_row_sees_what_came_before_it(model):
    """A rollback leaves out batches, and another epoch begins elsewhere."""
    memory = SegmentMemory(ROWS, 6, BLOCKS, HIDDEN)
    computed(model, memory, batch_number(0))
    batch = batch_number(2)
    np.testing.assert_allclose(
        computed(model, memory, batch), model({name: batch[name] for name in SEEN})["mlm_logits"], rtol=1e-5, atol=1e-6
    )
    assert memory.batch_number == 2 and memory.is_token.numpy().sum(axis=1).tolist() == [6, 4, 6]


def test_parts_of_a_batch_add_up_to_its_memory_also_to_a_smaller_batch(model):
    memory = SegmentMemory(ROWS + 1, 6, BLOCKS, HIDDEN)
    batch = batch_number(0)
    given = memory.with_memory(batch, 0)
    whole = memory.of_rows(model(given), given, 0)
    parts = []
    for row in range(ROWS):
        given = memory.with_memory({name: value[row : row + 1] for name, value in batch.items()}, tf.constant(row))
        parts.append(memory.of_rows(model(given), given, tf.constant(row)))
    for name, value in whole.items():
        np.testing.assert_allclose(value, sum(part[name] for part in parts), rtol=1e-5, atol=1e-5)
        assert not value[ROWS].numpy().any() and value[ROWS - 1].numpy().any()


@pytest.mark.slow
def test_compiled_in_slices_it_is_that_of_a_plain_step():
    def trained(jit_compile, accumulation):
        keras.utils.set_random_seed(0)
        model, memory = BertForPreTraining(CONFIG, terms=("plm",)), SegmentMemory(ROWS, 6, BLOCKS, HIDDEN)
        optimizer, objective = (
            make_optimizer(OptimizerConfig(warmup_steps=1), 3),
            PretrainingObjective(6, terms=("plm",)),
        )
        optimizer.build(model.trainable_variables)
        options = {"jit_compile": jit_compile, "accumulation": accumulation, "memory": memory}
        step, losses = Step(tf.distribute.get_strategy(), model, objective, optimizer, **options), []
        for number in range(3):
            batch = batch_number(number)
            labels = {"masked_lm_ids": tf.fill([ROWS, 2], 9), "masked_lm_weights": tf.ones([ROWS, 2])}
            losses.append(step.train({**batch, **labels}, tf.constant(number, tf.int64))["sums"]["plm"]["loss"])
        return [*losses, *memory.states, memory.is_token, memory.batch_number]

    for plain, compiled in zip(trained(False, 1), trained(True, 3), strict=True):
        np.testing.assert_allclose(plain, compiled, rtol=1e-4, atol=1e-5)


@pytest.mark.parity
def test_the_loss_of_a_second_row_is_that_of_transformers(goldens):
    """XLNetLMHeadModel, given the mems of the first row's text."""
    golden = Golden(goldens, "xlnet")
    stored = under("streams/", under("outputs/", golden.arrays))
    model = keras_bert.load(golden.path).model
    inputs = {ours: stored[f"whole/{theirs}"] for theirs, ours in ENCODER_INPUTS.items()}
    inputs["permutation_ranks"] = stored["whole/ranks"].astype("int32")
    inputs["masked_lm_positions"] = stored["whole/places"].astype("int32")
    rows, length = inputs["input_word_ids"].shape
    memory = SegmentMemory(rows, length - 2, model.config.num_hidden_layers, model.config.hidden_size)
    for number in range(2):
        numbers = {"goes_on": tf.ones([rows], tf.int32), "batch_numbers": tf.fill([rows], np.int64(number))}
        logits = computed(model, memory, {**{name: tf.constant(value) for name, value in inputs.items()}, **numbers})
    labels = np.take_along_axis(inputs["input_word_ids"], inputs["masked_lm_positions"], axis=1)
    loss = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    np.testing.assert_allclose(np.mean(loss), stored["outputs/loss_of_whole"], rtol=1e-5)
