"""Fine-tuning by LoRA: what is trained, what a step does, how runs resume, and what is written."""

import os

import keras
import numpy as np
import pytest
from clocked import without_clock
from finetuning import VOCABULARY, WORDS, finetune_config, spoil, write_tiny_bert
from said import listen
from served import write_served
from tiny import random_weights, tiny_config

import keras_bert
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.models.albert.kind import AlbertConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.recurrent.kind import RecurrentConfig
from keras_bert.models.tensor_names import lora_layers, model_variables
from keras_bert.tasks.classification.network import BertForSequenceClassification
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.finetuning import runs as finetuning_runs
from keras_bert.tasks.finetuning.run import Finetuning
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.optimizer import depth_factors
from keras_bert.training.stop_request import StopRequest
from keras_bert.training.variable_names import block_of, part_of, trainable_names

LORA = {"training.lora_rank": 4, "training.lora_alpha": 8.0, "training.epochs": 1.0, "optimizer.learning_rate": 1e-2}


def figures(path):
    lines = read_metrics(os.path.join(path, "metrics.jsonl"))
    return [without_clock(line) for line in lines]


def config_of(init, glue, **overrides):
    return finetune_config(init, **{"data.folder": glue, **LORA, **overrides})


@pytest.fixture(scope="module")
def run(init, glue, tmp_path_factory):
    """(path, results, lines) of a run to its end."""
    lines, path = listen(), str(tmp_path_factory.mktemp("runs") / "lora")
    return path, FinetuningRuns(config_of(init, glue, **{"training.epochs": 6.0})).one(path), list(lines)


@pytest.fixture(scope="module")
def one_epoch(init, glue, tmp_path_factory):
    """(path, results) of a run of one epoch."""
    path = str(tmp_path_factory.mktemp("runs") / "one_epoch")
    return path, FinetuningRuns(config_of(init, glue)).one(path)


def encoder_values(folder):
    return {name.attribute: variable.numpy() for name, variable in model_variables(keras_bert.load(folder).encoder)}


def test_it_learns_and_changes_the_kernels_of_the_blocks_and_the_pooler_alone(run, init):
    path, results, lines = run
    assert results["splits"]["dev"]["accuracy"] > 0.8 > results["baseline"]["dev"]["accuracy"]
    before, after = encoder_values(init), encoder_values(path)
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    kernels = {name for name in before if ".blocks." in name and name.endswith(".kernel")}
    assert len(kernels) == 6 and changed == kernels | {"encoder.pooler.dense.kernel", "encoder.pooler.dense.bias"}
    for name in kernels:
        assert np.linalg.matrix_rank(after[name] - before[name], tol=1e-4) == 4, name
    additions = 4 * 4 * (16 + 16) + 2 * 4 * (16 + 32)
    head = 16 * 16 + 16 + 16 * 2 + 2
    assert any(line.startswith(f"LoRA of rank 4: {additions + head:,} weights are trained, ") for line in lines)


def test_the_written_model_is_plain_and_says_what_the_run_measured(run, glue):
    path, results, _ = run
    assert not lora_layers(keras_bert.load(path).model)
    scored = FinetunedModel(os.path.join(path, "model"), {"folder": glue}).evaluate("dev")
    for name, value in scored.items():
        assert value == pytest.approx(results["splits"]["dev"][name], abs=1e-5)


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_to_the_same_end(one_epoch, init, glue, tmp_path, monkeypatch):
    """Bit for bit, with the frozen weights from the checkpoint too."""
    path, asked = str(tmp_path / "stopped"), []
    with monkeypatch.context() as patch:
        patch.setattr(StopRequest, "reason", lambda self: asked.append(1) or ("a test" if len(asked) == 13 else None))
        with pytest.raises(RunStopped):
            FinetuningRuns(config_of(init, glue)).one(path)
    results = FinetuningRuns(config_of(init, glue)).one(path)
    assert figures(path) == figures(one_epoch[0]) and results["splits"] == one_epoch[1]["splits"]
    straight, resumed = encoder_values(one_epoch[0]), encoder_values(path)
    for name, value in straight.items():
        np.testing.assert_array_equal(resumed[name], value, name)


@pytest.mark.parametrize("method", ["one", "sweep"])
def test_the_default_rate_is_above_that_of_all_weights(init, glue, tmp_path, monkeypatch, method):
    """Additions that begin at 0 hardly move at the rates that suit trained weights."""
    begun = []

    class Settled:
        def __init__(self, config, *_):
            begun.append(config.optimizer.learning_rate)

        def finetune(self):
            return {"splits": {"dev": {"accuracy": 0.5}}, "steps": 1}

    monkeypatch.setattr(finetuning_runs, "Finetuning", Settled)
    config, lines = config_of(init, glue, **{"optimizer.learning_rate": None}), listen()
    getattr(FinetuningRuns(config), method)(str(tmp_path / "run"))
    assert set(begun) == ({1e-3} if method == "one" else {1.7e-3, 1e-3, 6.9e-4})
    assert method == "sweep" or "Learning rate 0.001, the default for LoRA on a model of 1 × 16." in lines


def test_another_rank_is_another_run(one_epoch, init, glue):
    with pytest.raises(UserError, match="training.lora_rank: was 4, now 8"):
        FinetuningRuns(config_of(init, glue, **{"training.lora_rank": 8, "training.epochs": 2.0})).one(one_epoch[0])


def test_a_model_that_was_trained_on_since_is_refused(glue, tmp_path, monkeypatch):
    """`adapter/` would hold additions to weights that are no longer in the model's folder."""
    init, path = write_tiny_bert(tmp_path / "bert"), tmp_path / "run"
    monkeypatch.setattr(Finetuning, "finetune", lambda self: {})
    FinetuningRuns(config_of(init, glue)).one(str(path))
    (path / "checkpoints" / "step-000000001").mkdir(parents=True)
    FinetuningRuns(config_of(init, glue)).one(str(path))
    spoil(init)
    with pytest.raises(UserError, match="run: holds a run on other data .init, .*bert: SHA-256: was .*Restore"):
        FinetuningRuns(config_of(init, glue)).one(str(path))


@pytest.mark.parametrize(
    "changes",
    [
        {"training.accumulation": 4, "training.steps_per_loop": 2},
        pytest.param({"training.jit_compile": True}, marks=pytest.mark.slow),
        pytest.param({"training.recompute_every": 1}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_ways_to_compute_a_step_come_to_the_same(one_epoch, init, glue, tmp_path, changes):
    results = FinetuningRuns(config_of(init, glue, **changes)).one(str(tmp_path / "run"))
    assert results["splits"]["dev"]["loss"] == pytest.approx(one_epoch[1]["splits"]["dev"]["loss"], abs=1e-3)


@pytest.mark.slow
def test_two_replicas_come_to_what_one_does(one_epoch, init, glue, tmp_path, mirrored_strategy):
    runs = FinetuningRuns(config_of(init, glue), mirrored_strategy)
    results = runs.one(str(tmp_path / "run"))
    assert runs.strategy.num_replicas_in_sync == 2
    assert results["splits"]["dev"]["loss"] == pytest.approx(one_epoch[1]["splits"]["dev"]["loss"], abs=1e-3)


@pytest.mark.slow
def test_averaged_weights_are_validated_and_written(init, glue, tmp_path):
    """The written kernels include the product of both averages, which is what was validated."""
    path = str(tmp_path / "run")
    changes = {"optimizer.weight_average": 0.8, "optimizer.layer_decay": 0.9}
    results = FinetuningRuns(config_of(init, glue, **changes)).one(path)
    scored = FinetunedModel(path, {"folder": glue}).evaluate("dev")
    assert scored["loss"] == pytest.approx(results["splits"]["dev"]["loss"], abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_comes_close(one_epoch, init, glue, tmp_path, precision):
    results = FinetuningRuns(config_of(init, glue, **{"training.precision": precision})).one(str(tmp_path / "run"))
    assert results["splits"]["dev"]["loss"] == pytest.approx(one_epoch[1]["splits"]["dev"]["loss"], abs=0.03)


@pytest.mark.slow
def test_a_tagger_with_a_crf(init, tmp_path):
    """Such a tagger has no pooler."""
    random, paths = np.random.default_rng(0), {}
    for split, count in (("train", 120), ("dev", 30)):
        words = random.integers(0, 12, (count, 6))
        sentences = ["\n".join(f"{WORDS[w]} {'B-PER' if w < 6 else 'O'}" for w in row) for row in words]
        paths[f"data.{split}"] = str(tmp_path / f"{split}.txt")
        (tmp_path / f"{split}.txt").write_text("\n\n".join(sentences) + "\n", encoding="utf-8")
    path = str(tmp_path / "run")
    config = finetune_config(init, "ner", **paths, **{**LORA, "training.epochs": 4.0, "head.crf": True})
    results = FinetuningRuns(config).one(path)
    assert results["splits"]["dev"]["f1"] > 0.9
    before, after = encoder_values(init), encoder_values(path)
    assert {name.rpartition(".")[2] for name in after if not np.array_equal(before[name], after[name])} == {"kernel"}


def test_an_albert_whose_blocks_share_the_additions(tmp_path):
    folder = write_served(tmp_path / "model", "albert")
    rows = "".join(f'{{"text": "{text}", "label": "{label}"}}\n' for text, label in [("the cat", "a"), ("sat", "b")])
    (tmp_path / "train.jsonl").write_text(rows * 8, encoding="utf-8")
    data = {"data.train": str(tmp_path / "train.jsonl"), "data.dev": str(tmp_path / "train.jsonl")}
    path = str(tmp_path / "run")
    results = FinetuningRuns(finetune_config(str(folder), "text", **data, **LORA, **{"input.max_length": 12})).one(path)
    scored = FinetunedModel(path).evaluate("dev")
    assert scored["loss"] == pytest.approx(results["splits"]["dev"]["loss"], abs=1e-5)


def model_with_lora(config=None, seed=0):
    keras.utils.set_random_seed(seed)
    model = BertForSequenceClassification(config or tiny_config(), 2)
    random_weights(model)
    model.encoder.enable_lora(2, 4.0)
    return model


def test_additions_have_the_names_and_the_rates_of_their_blocks():
    """Without names, `rates` could not match the additions or the kernels that have them."""
    names = trainable_names(model_with_lora())
    assert names[:2] == [f"encoder.blocks.0.attention.query.lora_kernel_{one}" for one in "ab"]
    assert {part_of(name) for name in names} == {"block_0", "block_1", "pooler", "classifier"}
    factors = dict(zip(names, depth_factors(0.5, names)))
    assert {factors[name] for name in names if block_of(name) == 0} == {0.25}
    assert {factors[name] for name in names if block_of(name) == 1} == {0.5}


def test_additions_of_shared_blocks_have_names():
    config = AlbertConfig(vocab_size=60, hidden_size=16, num_attention_heads=2, num_hidden_layers=3, embedding_size=8)
    names = trainable_names(model_with_lora(config))
    assert sum("lora_kernel" in name for name in names) == 12 == sum(name.startswith("encoder.b") for name in names)


def test_weights_are_loaded_beneath_the_additions(init):
    """A kernel with LoRA is a new sum each time it is read, so nothing can be assigned to it."""
    folder = open_model_folder(init)
    plain, adapted = (BertForPreTraining(folder.config) for _ in range(2))
    adapted.encoder.enable_lora(2)
    for model in (plain, adapted):
        folder.load_into(model)
    inputs = {
        "input_word_ids": np.array([[2, 7, 9, 3]]),
        "input_mask": np.ones((1, 4)),
        "input_type_ids": np.zeros((1, 4)),
    }
    outputs = (model.encoder(inputs)["sequence_output"] for model in (plain, adapted))
    np.testing.assert_array_equal(*outputs)


def test_the_random_half_of_the_additions_follows_from_the_seed():
    def halves(seed):
        return [layer.lora_kernel_a.numpy() for layer in lora_layers(model_with_lora(seed=seed)).values()]

    one, same, other = halves(1), halves(1), halves(2)
    assert all(np.array_equal(*pair) for pair in zip(one, same))
    assert not any(np.array_equal(*pair) for pair in zip(one, other))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"training.lora_rank": -1}, "training.lora_rank"),
        ({"training.lora_rank": 0}, "training.lora_alpha: needs lora_rank, whose additions it scales. Received: 8.0"),
        ({"training.freeze": True}, "training.freeze: needs an encoder that is not frozen, with lora_rank"),
        ({"from_scratch": True}, "from_scratch: needs an encoder whose weights are trained. Received: .*lora_rank 4"),
        ({"initialization.attention": "mimetic"}, "initialization: needs an encoder whose weights are trained"),
        ({"task": "ner", "features.kind": "last"}, "features: needs an encoder without additions"),
    ],
)
def test_what_has_no_meaning_with_lora_is_refused(init, glue, changes, told):
    with pytest.raises(UserError, match=told):
        config_of(init, glue, **changes)


def test_a_model_without_attention_is_refused_in_one_line(glue, tmp_path):
    config = RecurrentConfig(
        vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, block="gru"
    )
    write_model_folder(str(tmp_path / "gru"), BertForPreTraining(config), VOCABULARY, lower_case=True)
    with pytest.raises(UserError, match="training.lora_rank: needs a model with BERT's attention. Received: .*gru, of"):
        FinetuningRuns(config_of(str(tmp_path / "gru"), glue))


@pytest.mark.slow
def test_of_several_seeds_the_best_ones_adapter_is_beside_its_model(init, glue, tmp_path):
    path = str(tmp_path / "runs")
    results = FinetuningRuns(config_of(init, glue)).seeds(path, [1, 2])
    best = encoder_values(os.path.join(path, f"seed-{results['best_seed']}", "adapter"))
    for name, value in encoder_values(os.path.join(path, "adapter")).items():
        np.testing.assert_array_equal(value, best[name], name)


def test_the_adapter_beside_the_model_says_the_same(run, init, glue):
    path, results, _ = run
    adapter = os.path.join(path, "adapter")
    opened = open_model_folder(adapter)
    assert opened.head == open_model_folder(path).head and opened.base.path == init
    scored = FinetunedModel(adapter, {"folder": glue}).evaluate("dev")
    assert scored["loss"] == pytest.approx(results["splits"]["dev"]["loss"], abs=1e-5)
    merged, plain = encoder_values(adapter), encoder_values(path)
    for name, value in plain.items():
        np.testing.assert_allclose(merged[name], value, atol=1e-6, err_msg=name)
    assert os.path.getsize(os.path.join(adapter, "adapter_model.safetensors")) < 2**14
