"""`block: gru` and `block: lstm`: what a block sees, its size, its folder, its training, and what it refuses."""

import os

import keras
import numpy as np
import pytest
from coming_back import assert_a_keras_file_keeps, reopened
from corpus import write_corpus
from pretraining import MODEL, metrics, recipe
from tiny import VOCABULARY, pretraining_batch, random_weights

import keras_bert
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.core.errors import UserError
from keras_bert.export.serving_function import serving_function
from keras_bert.inference.texts import encoder_inputs
from keras_bert.models import sizes
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.recurrent.encoder import RecurrentEncoder
from keras_bert.models.recurrent.kind import Recurrent, RecurrentConfig
from keras_bert.studies.attention import text_attention
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.training.run_folder import RunFolder

SIZES = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 32}
CONFIGS = {
    block: RecurrentConfig(**SIZES, block=block, max_position_embeddings=24, hidden_dropout_prob=0.0)
    for block in ("gru", "lstm")
}
RUN = {"model": {**MODEL, "block": "gru"}, "training.steps": 4, "training.evaluate_every": 4}


@pytest.fixture(scope="module", params=CONFIGS)
def model(request):
    made = BertForPreTraining(CONFIGS[request.param])
    random_weights(made, scale=0.5)
    return made


@pytest.fixture(scope="module")
def batch():
    return pretraining_batch(CONFIGS["gru"])


@pytest.mark.slow
def test_both_directions_are_seen_and_padding_is_not(model, batch):
    """A row computed without its padding is the same; its last token changes the first state, its first the last."""
    full = model.encoder(batch)
    assert batch["input_mask"].sum(axis=1).min() < 12
    for row, length in enumerate(batch["input_mask"].sum(axis=1)):
        alone = {name: batch[name][row : row + 1, :length] for name in batch if name.startswith("input_")}
        states = model.encoder(alone)
        expected = full["sequence_output"][row, :length]
        np.testing.assert_allclose(states["sequence_output"][0], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(states["pooled_output"][0], full["pooled_output"][row], rtol=1e-5, atol=1e-6)
        for place, other in ((0, -1), (length - 1, 0)):
            ids = alone["input_word_ids"].copy()
            ids[:, place] = (ids[:, place] + 1) % 60
            changed = model.encoder({**alone, "input_word_ids": ids})["hidden_states"]
            # One block is enough.
            assert not np.allclose(changed[1][:, other], states["hidden_states"][1][:, other], atol=1e-5)


def test_a_block_is_keras_layer_with_berts_residuals(model, batch):
    """The first block, computed from Keras' own layers for each direction of an unpadded row."""
    row = {name: batch[name][:1, :6] for name in batch if name.startswith("input_")}
    states, block = model.encoder(row)["hidden_states"], model.encoder.blocks[0]
    both = block.attention.both
    ahead = both.forward_layer(states[0])
    back = np.flip(both.backward_layer(states[0]), axis=1)
    hidden = block.attention_layer_norm(states[0] + np.concatenate([ahead, back], axis=-1))
    output = block.output_dense(keras.activations.gelu(block.intermediate(hidden), approximate=False))
    np.testing.assert_allclose(states[1], block.output_layer_norm(hidden + output), rtol=1e-5, atol=1e-6)


def test_its_size_is_that_of_the_table(model):
    counted = sum(int(np.prod(variable.shape)) for variable in model.weights)
    config = model.config
    assert counted == sizes.total(sizes.encoder_parts(config)) + sizes.total(sizes.head_parts(config))


def test_its_products_are_counted():
    """H 16, two directions of 8 units, F 32, V 60, 2 layers, 12 tokens, 3 predictions."""
    heads = 2 * 3 * 16 * 16 + 2 * 3 * 16 * 60 + 2 * 16 * 16 + 2 * 16 * 2
    for config, gates in zip(CONFIGS.values(), (3, 4)):
        recurrence = 2 * gates * (2 * 12 * 16 * 8 + 2 * 12 * 8 * 8)
        layer = recurrence + 2 * (2 * 12 * 16 * 32)
        assert Recurrent().training_flops(config, 12, 3) == 3 * (2 * layer + heads)


def test_its_folder_opens_again(model, batch, tmp_path):
    again = reopened(model, batch, tmp_path / "model")
    assert isinstance(again.encoder, RecurrentEncoder)
    assert "from transformers" not in (tmp_path / "model" / "README.md").read_text("utf-8")
    assert again.fill(["w1 [MASK]"])
    with pytest.raises(UserError, match="needs model.attention causal to generate"):
        again.generate(["w1"])
    with pytest.raises(UserError, match="Google has no format for a recurrent BERT"):
        convert_folder(again.folder, "google", str(tmp_path / "google"), VOCABULARY)
    with pytest.raises(UserError, match="needs BERT's attention. Received: a recurrent BERT"):
        text_attention(again, "w1 w2")
    for option in ("return_attentions", "causal"):
        with pytest.raises(ValueError, match=f"{option}: needs a model with attention"):
            again.encoder(batch, **{option: True})


@pytest.mark.slow
def test_a_task_head_is_on_top_of_it(batch, tmp_path):
    head = ClassificationConfig(("no", "yes"))
    made = kind_of_head(head).make_model(CONFIGS["gru"], head)
    random_weights(made)
    again = reopened(made, batch, tmp_path / "model", head)
    texts = ["w1 w2 w3", "w4"]  # Served as one batch, with padding.
    with pytest.raises(UserError, match="--compute bfloat16: needs a model with BERT's attention"):
        serving_function(again, compute="bfloat16")
    served = serving_function(again)(texts)["probabilities"]
    for text, probabilities in zip(texts, served):
        ids = again.tokenizer.tokenize([text]).to_list()
        logits = again.model(encoder_inputs(ids, again.tokenizer.vocabulary))["logits"][0]
        np.testing.assert_allclose(probabilities, keras.ops.softmax(logits), rtol=1e-4)
    assert_a_keras_file_keeps(made, batch, tmp_path)


@pytest.mark.slow
def test_it_is_pretrained(tmp_path):
    """It starts from vectors of its text and fixed positions; mimetic attention, which it lacks, is refused."""
    corpus, run = write_corpus(tmp_path / "text.txt"), RunFolder(str(tmp_path / "run"))
    initialization = {"word_embeddings": "corpus", "position_embeddings": "sinusoidal"}
    pretrain(recipe(corpus, **RUN, initialization=initialization), run)
    losses = [line["mlm_loss"] for line in metrics(run) if "mlm_loss" in line]
    assert losses and np.isfinite(losses).all()
    loaded = keras_bert.load(run.path)
    assert loaded.config.block == "gru" and loaded.config.hidden_size == 32
    with open(os.path.join(run.model, "README.md"), encoding="utf-8") as stream:
        assert "A recurrent BERT (`RecurrentForPreTraining`)" in stream.read()
    with pytest.raises(UserError, match=r"initialization.attention: needs random for a recurrent BERT"):
        other = RunFolder(str(tmp_path / "other"))
        pretrain(recipe(corpus, **RUN, initialization={"attention": "mimetic"}), other)


def test_it_is_chosen_by_one_setting():
    """`--set model.block=lstm` of a recipe for BERT; the model's other settings stay."""
    chosen = recipe("text.txt", **{"model.block": "lstm", "model.positions": "sinusoidal"}).model
    assert chosen == RecurrentConfig(**MODEL, block="lstm", positions="sinusoidal")
    with pytest.raises(UserError, match="model.block: needs gru or lstm; leave it out for attention"):
        recipe("text.txt", **{"model.block": "attention"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model.block": "rnn"}, "block: needs gru or lstm; leave it out for attention"),
        ({"model.attention": "causal"}, "attention: needs no value if block is gru"),
        ({"model.hidden_size": 33, "model.num_attention_heads": 3}, "hidden_size: needs an even number"),
        ({"objective.tokens": "next"}, "model.attention: needs causal"),
        ({"phases.0.tokens": "next"}, "phases.0.tokens: needs no value for a recurrent BERT"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        recipe("text.txt", **{**RUN, **settings})
