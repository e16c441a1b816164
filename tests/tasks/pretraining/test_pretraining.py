"""Pretraining end to end on generated text: it learns, it can be stopped, and it says what is wrong."""

import functools
import itertools
import json
import os
import pathlib
import shutil
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from clocked import CLOCKED
from corpus import write_corpus
from pretraining import MODEL, WITHOUT_DROPOUT, assert_resumes_like, losses_on, metrics, recipe, stopped_at
from said import listen

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.core.yaml_and_json import read_yaml
from keras_bert.inference.loading import load
from keras_bert.tasks.pretraining import run as pretraining_run
from keras_bert.tasks.pretraining.run import Pretraining, pretrain
from keras_bert.training import accumulation, compilation
from keras_bert.training.compilation import StepSeconds
from keras_bert.training.loss_scale import LossScale
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.run_folder import RunFolder
from tools import compare_runs


@pytest.fixture(scope="module")
def told(corpus, tmp_path_factory):
    """(run folder, results, lines said) of an uninterrupted run."""
    run, said = RunFolder(str(tmp_path_factory.mktemp("runs") / "straight")), listen()
    return run, pretrain(recipe(corpus), run), said


@pytest.fixture(scope="module")
def straight(told):
    return told[:2]


@pytest.fixture
def finished(straight, tmp_path):
    """A copy of that run, to go on from."""
    return RunFolder(shutil.copytree(straight[0].path, str(tmp_path / "run")))


def test_a_run_writes_what_it_promises(straight):
    run, results = straight
    lines = read_metrics(run.metrics_file)
    assert [line["step"] for line in lines] == [2, 4, 6, 6, 8, 10, 12, 12]
    training, validation = lines[0], lines[3]
    assert {"loss", "mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy", "learning_rate", "grad_norm"} <= set(
        training
    )
    assert CLOCKED - set(training) <= {"eval_seconds", "checkpoint_seconds", "lost_seconds"}
    assert training["tokens_per_second"] < 32 * training["examples_per_second"]
    assert {"eval_loss", "eval_perplexity", "eval_mask_token_loss", "eval_mask_token_unigram_loss"} <= set(validation)
    np.testing.assert_allclose(validation["eval_perplexity"], np.exp(validation["eval_mlm_loss"]))
    assert sorted(os.listdir(run.checkpoints)) == ["step-000000006", "step-000000009", "step-000000012"]
    assert sorted(os.listdir(run.tensorboard)) == ["training", "unigram", "validation"]
    assert json.load(open(run.results_file, encoding="utf-8")) == results


@pytest.mark.slow
def test_stopped_and_started_again_gives_the_same_numbers(corpus, straight, tmp_path, monkeypatch):
    """Killed after step 10 with the last checkpoint at 9, between two lines of the log: every later figure and weight
    is the same, bit for bit."""
    run = RunFolder(str(tmp_path / "stopped"))
    assert_resumes_like(straight, recipe(corpus), run, monkeypatch, stop=10, checkpoint=9)


@pytest.mark.slow
def test_loops_of_steps_give_the_same_numbers_stopped_and_started_again(corpus, straight, tmp_path, monkeypatch):
    """Two steps a call, killed between two checkpoints, against one step a call without a stop."""
    run = RunFolder(str(tmp_path / "run"))
    config = recipe(corpus, **{"training.steps_per_loop": 2, "training.checkpoint_every": 4})
    assert_resumes_like(straight, config, run, monkeypatch, stop=6, checkpoint=4)


@pytest.mark.slow
def test_float16_stopped_and_started_again_gives_the_same_numbers(corpus, tmp_path, monkeypatch):
    """The loss scale starts so high that steps are skipped; scale and count are logged, and restored bit for bit."""
    too_high = functools.partial(LossScale, initial=2.0**20, growth_steps=2)
    monkeypatch.setattr("keras_bert.training.engine.LossScale", too_high)
    straight, stopped = (RunFolder(str(tmp_path / name)) for name in ("straight", "stopped"))
    config = recipe(corpus, **{"training.precision": "float16"})
    assert_resumes_like((straight, pretrain(config, straight)), config, stopped, monkeypatch, stop=10, checkpoint=9)
    lines = [line for line in read_metrics(straight.metrics_file) if "loss_scale" in line]
    assert lines[-1]["skipped_steps"] > 0 and len({line["loss_scale"] for line in lines}) > 1


@pytest.mark.slow
def test_compiling_chosen_at_the_start_is_kept_when_a_run_resumes(corpus, tmp_path, monkeypatch):
    """Bit for bit as with `jit_compile: true`, though only the first start times its steps."""
    seconds = itertools.cycle([StepSeconds(10.0, 10.0), StepSeconds(10.0, 1.0)])
    monkeypatch.setattr(compilation, "time_step", lambda step, batch: next(seconds))
    monkeypatch.setattr(compilation, "later_seconds", lambda step, batch: 10.0)
    straight, stopped = (RunFolder(str(tmp_path / name)) for name in ("straight", "stopped"))
    pretrain(recipe(corpus, **{"training.jit_compile": True}), straight)
    config, said = recipe(corpus, **{"training.jit_compile": "auto"}), listen()
    with stopped_at(10, monkeypatch):
        pretrain(config, stopped)
    assert any(line.startswith("jit_compile auto: compiled. A step takes 1 seconds") for line in said)
    monkeypatch.setattr(compilation, "time_step", lambda step, batch: pytest.fail("timed again"))
    pretrain(config, stopped)
    assert metrics(stopped) == metrics(straight)


@pytest.mark.slow
def test_a_run_with_lamb_and_averaged_weights_resumes_and_exports_them(corpus, tmp_path, monkeypatch):
    """Killed between two checkpoints, against uninterrupted: figures, export and checkpoint, bit for bit.

    The average is validated and exported, not the weights that training continues with.
    """
    settings = {"name": "lamb", "weight_average": 0.9, "layer_decay": 0.9, "rates": {"embeddings": 0.5}}
    changes = {f"optimizer.{key}": value for key, value in settings.items()} | {"training.gradient_norms": True}
    runs = [RunFolder(str(tmp_path / name)) for name in ("straight", "stopped")]
    config = recipe(corpus, **changes)
    with stopped_at(10, monkeypatch):
        pretrain(config, runs[1])
    for run in runs:
        pretrain(config, run)
    compared = compare_runs.compare(*(run.path for run in runs))
    assert all(number > 0 and not different for _, number, different in compared), compared
    assert {"grad_norm_embeddings", "grad_norm_block_0", "grad_norm_mlm_head"} <= set(metrics(runs[0])[0])
    exported = load(runs[0].path).model.encoder.embeddings.word_embeddings.numpy()
    checkpoint = compare_runs._last_checkpoint(runs[0].path)
    tables = {name: value for name, value in checkpoint.items() if value.shape == exported.shape}
    assert len(tables) == 4, "The weights, two moments and the average."
    (same,) = [name for name, value in tables.items() if np.array_equal(value, exported)]
    assert "/_trainable_variables/" not in same, sorted(tables)


@pytest.mark.slow
def test_the_recipe_for_tpus_runs_here_on_little(corpus, tmp_path):
    """With its two phases, bfloat16, compilation and loops of steps; only the sizes and the strategy are changed."""
    little = {f"model.{name}": value for name, value in MODEL.items()}
    little |= {f"phases.{phase}.sequence_length": length for phase, length in enumerate((16, 32))}
    little |= {f"phases.{phase}.batch_size": 4 for phase in (0, 1)}
    little |= {f"phases.{phase}.max_predictions_per_seq": 3 for phase in (0, 1)}
    little |= {"phases.0.share": 0.6, "phases.1.share": 0.4}
    little |= {"data.files": [corpus], "data.validation_share": 0.1, "training.evaluation_examples": 16}
    # The second phase begins, and the run ends, within a loop of two steps.
    steps = {"steps_per_loop": 2, "steps": 5, "log_every": 2, "evaluate_every": 4, "checkpoint_every": 4}
    little |= {f"training.{name}": value for name, value in steps.items()}
    config = PretrainConfig.from_file(find_config("pretrain", "bert_base_tpu"), {**little, "training.strategy": "one"})
    assert (config.training.precision, config.training.jit_compile) == ("bfloat16", True)
    run = RunFolder(str(tmp_path / "run"))
    results = pretrain(config, run)
    assert results["steps"] == 5 and np.isfinite(results["eval_loss"])
    assert [line["step"] for line in metrics(run)] == [2, 4, 4, 5, 5]


@pytest.mark.slow
def test_a_finished_run_says_so_and_more_steps_go_on(corpus, finished):
    said = listen()
    pretrain(recipe(corpus), finished)
    assert len(said) == 1 and "is finished: 12 steps" in said[0]
    # Versions without runs by the clock wrote no minutes.
    finished.write_results({key: value for key, value in finished.results().items() if key != "minutes"})
    pretrain(recipe(corpus), finished)
    assert len(said) == 2 and "is finished: 12 steps" in said[1]
    assert pretrain(recipe(corpus, **{"training.steps": 14}), finished)["steps"] == 14
    assert "Resuming from step 12." in said


def test_a_run_that_a_callback_ended_is_finished(corpus, tmp_path):
    """Otherwise the same call would train on to the recipe's last step instead of returning the run."""
    run, stop = RunFolder(str(tmp_path / "run")), keras.callbacks.Callback()
    stop.on_train_batch_end = lambda batch, logs=None: setattr(stop.model, "stop_training", True)
    stopped, said = pretrain(recipe(corpus), run, callbacks=[stop]), listen()
    assert stopped["steps"] == 1 and pretrain(recipe(corpus), run) == stopped
    assert "is finished: 1 steps" in said[-1]


def test_more_steps_without_checkpoints_leave_a_finished_run_alone(corpus, finished):
    """A user who removed them to save space would get a model of a few steps instead of the good one."""
    shutil.rmtree(finished.checkpoints)

    def content():
        return [
            pathlib.Path(path).read_bytes() for path in (finished.metrics_file, f"{finished.model}/model.safetensors")
        ]

    before = content()
    with pytest.raises(UserError, match="Received: a finished run without any. Copy .*checkpoints back, .*--init"):
        pretrain(recipe(corpus, **{"training.steps": 14}), finished)
    assert content() == before and not os.path.exists(finished.checkpoints)


@pytest.mark.slow
def test_the_time_limit_includes_start_up(corpus, tmp_path, monkeypatch):
    """After an hour of preparation under a limit of half an hour, the run would train on until it is killed."""
    run, build, monotonic = RunFolder(str(tmp_path / "run")), Pretraining.build, time.monotonic

    def build_for_an_hour(pretraining):
        build(pretraining)
        monkeypatch.setattr("time.monotonic", lambda: monotonic() + 3600.0)

    monkeypatch.setattr(Pretraining, "build", build_for_an_hour)
    with pytest.raises(RunStopped, match="Stopped by the time limit after step 1, .* with a checkpoint"):
        pretrain(recipe(corpus, **{"training.max_minutes": 30.0}), run)
    assert os.listdir(run.checkpoints) == ["step-000000001"]


@pytest.mark.slow
def test_validation_asks_every_seed_the_same(corpus, straight, tmp_path):
    """The unigram's loss at the [MASK]ed positions depends only on what is asked.

    The results' examples are answered by the model that is written.
    """
    run = RunFolder(str(tmp_path / "run"))
    sentence = "The [MASK] sees the dog."
    settings = {"training.seed": 7, "training.steps": 2, "examples": [sentence]}
    results = pretrain(recipe(corpus, **settings), run)
    assert load(run.path).predict([sentence])[0].filled == results["examples"][0]["filled"]
    assert results["eval_mask_token_unigram_loss"] == straight[1]["eval_mask_token_unigram_loss"]
    assert results["eval_mlm_loss"] != straight[1]["eval_mlm_loss"]


@pytest.mark.slow
def test_validation_computes_the_same_rows_in_the_slices_of_training(corpus, tmp_path, monkeypatch):
    """A batch that fits in memory only in slices would exhaust it in the first validation. 20 examples are three
    batches of 8, but ten slices of 2, in which fewer rows would be measured. Memory for three examples makes
    slices of 2.

    The rows that were kept are the same, and need no shards any more.
    """
    monkeypatch.setattr(accumulation, "step_memory", lambda model, batch, *others: batch.batch_size)
    monkeypatch.setattr(accumulation, "_COMMAND", 0)
    monkeypatch.setattr(accumulation, "memory_limit", lambda: 3)
    figures = []
    for given, slices, most_kept in ((1, 1, 0), ("auto", 4, 10**6)):
        monkeypatch.setattr(pretraining_run, "_MOST_KEPT", most_kept)
        changes = {"training.accumulation": given, "training.evaluation_examples": 20}
        built = Pretraining(recipe(corpus, **changes), RunFolder(str(tmp_path / str(given))))
        built.build()
        built.begin()
        sizes = [len(batch["input_word_ids"]) for batch in built._validation_batches(0)]
        assert sizes == [8 // slices] * (3 * slices)
        assert built.engine.step.accumulation == built.config.training.accumulation == slices
        if most_kept:
            shutil.rmtree(built.run.data)
        figures.append(built.evaluate(0))
    assert figures[0] == pytest.approx(figures[1], rel=1e-5)


@pytest.mark.slow
def test_parallel_slices_divide_the_batches_and_change_nothing(corpus, straight, tmp_path, monkeypatch):
    """Batches of 8 on four cores, of which 6 parts leave 4.

    As many share the cores: a batch without halves used to be computed on one core, and the others had nothing to do.
    """
    shared = []
    monkeypatch.setattr(pretraining_run, "all_cores", lambda: 4)
    monkeypatch.setattr(pretraining_run, "share_cores", lambda training, parts: shared.append(parts))
    run = RunFolder(str(tmp_path / "run"))
    results = pretrain(recipe(corpus, **{"training.parallel_slices": 6}), run)
    assert read_yaml(run.config_file)["training"]["parallel_slices"] == 4
    Pretraining(
        recipe(corpus, **{"phases.0.batch_size": 7, "training.parallel_slices": 2}), RunFolder(f"{tmp_path}/odd")
    )
    assert shared == [4, 1]
    assert results["eval_loss"] == pytest.approx(straight[1]["eval_loss"], rel=1e-5)


def test_no_document_is_on_both_sides(straight):
    from keras_bert.data.shards.shard_files import ShardSet

    def documents(side):
        shards = ShardSet.open(os.path.join(straight[0].data, "shards", side))
        for name in shards.names:
            tokens, sentences, bounds = shards.read(name)
            yield from (tokens[sentences[a] : sentences[b]].tobytes() for a, b in zip(bounds, bounds[1:]))

    train, validation = set(documents("train")), set(documents("validation"))
    assert train and validation and not train & validation


@pytest.mark.slow
def test_a_run_by_the_clock_ends_on_time_and_is_then_finished(corpus, tmp_path, monkeypatch):
    """A step takes a quarter of a second by this clock: the rate falls with it, and not with the recipe's 12 steps."""
    ticks = itertools.count()
    monkeypatch.setattr("keras_bert.training.budget.monotonic", lambda: 0.25 * next(ticks))
    run = RunFolder(str(tmp_path / "run"))
    clocked = {"training.minutes": 0.1, "optimizer.warmup_steps": 1, "training.evaluate_every": 100_000}
    results = pretrain(recipe(corpus, **clocked), run)
    rates = [line["learning_rate"] for line in metrics(run) if "learning_rate" in line]
    assert results["steps"] == 24
    # The rate of a step is that of the time when it began.
    np.testing.assert_allclose(rates, [1e-2 * (1 - (step - 1) / 24) for step in range(2, 25, 2)], rtol=1e-4)
    said = listen()
    assert pretrain(recipe(corpus, **clocked), run)["steps"] == results["steps"]
    assert len(said) == 1 and "is finished" in said[0]


@pytest.mark.slow
def test_the_masked_lm_learns(tmp_path):
    """After 300 steps it knows much of the grammar: it is far below the unigram where no input shows the answer."""
    corpus = write_corpus(tmp_path / "text.txt", 1500)  # Three epochs, since opening one takes as long as its steps.
    settings = {
        "phases.0.batch_size": 32,
        "optimizer.learning_rate": 1e-2,
        "optimizer.warmup_steps": 30,
        "training.steps": 300,
        "training.log_every": 50,
        "training.evaluate_every": 300,
    }
    run = RunFolder(str(tmp_path / "run"))
    results = pretrain(recipe(corpus, **settings), run)
    assert results["eval_mask_token_loss"] < results["eval_mask_token_unigram_loss"] - 0.5
    lines = metrics(run)
    assert lines[-2]["mlm_loss"] < lines[0]["mlm_loss"] - 0.5


@pytest.mark.parametrize(
    "changes", [{}, {"model.attention": "causal", "objective.tokens": "next", "objective.pair": "none"}]
)
def test_an_example_that_does_not_fit_is_refused_before_training(corpus, tmp_path, changes):
    """Otherwise it would be found only after the last step, at every start, and the run would never have results."""
    examples = ["The [MASK] sees the dog.", f"The cat {'sees ' * 48}the [MASK]."]
    config = recipe(corpus, **changes, examples=examples)
    pretraining = Pretraining(config, RunFolder(str(tmp_path / "run")))
    with pretraining.run, pytest.raises(UserError, match="examples.1: The text needs at most 4. .*Shorten it"):
        pretraining.build()


def test_a_vocabulary_of_another_size_is_refused(corpus, tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"vocab.txt: needs model.vocab_size \(120\) rows. Received: 6"):
        pretrain(recipe(corpus, **{"vocabulary.file": str(path)}), RunFolder(str(tmp_path / "run")))


def test_an_altered_shard_is_refused_before_the_first_step(corpus, finished):
    path = os.path.join(finished.data, "shards", "train", "00000.tokens")
    content = bytearray(open(path, "rb").read())
    content[10] ^= 1
    open(path, "wb").write(content)
    with pytest.raises(UserError, match="00000.tokens: is not the file"):
        pretrain(recipe(corpus, **{"training.steps": 14}), finished)


@pytest.mark.slow
def test_mirrored_gives_the_losses_of_one_device(corpus, tmp_path, monkeypatch, mirrored_strategy):
    """From start to end, including the reader's distribution over replicas; dropout is off."""
    config = recipe(corpus, **WITHOUT_DROPOUT, **{"training.steps": 6})
    one = losses_on(tf.distribute.OneDeviceStrategy("CPU:0"), config, tmp_path / "one", monkeypatch)
    mirrored = losses_on(mirrored_strategy, config, tmp_path / "mirrored", monkeypatch)
    np.testing.assert_allclose(one, mirrored, rtol=1e-5)


def test_a_batch_that_does_not_divide_is_refused(corpus, tmp_path, monkeypatch, mirrored_strategy):
    monkeypatch.setattr("keras_bert.tasks.pretraining.run.make_strategy", lambda name, *where: mirrored_strategy)
    with pytest.raises(UserError, match=r"phases.0.batch_size: needs a multiple of 2 .*Received: 7.*6 and 8"):
        pretrain(recipe(corpus, **{"phases.0.batch_size": 7}), RunFolder(str(tmp_path / "run")))


def test_what_the_examples_are_is_said_once(told):
    (described,) = [line for line in told[2] if line.startswith("Training examples:")]
    assert "an epoch, at most 32 tokens, " in described and "with the next sentence" in described
