"""Whole commands on paths of stores. In TensorFlow's memory, `ram://`, the builtin `open` opens nothing."""

import json
import os
import re

import numpy as np
import pytest
import tensorflow as tf
import yaml
from clocked import without_clock
from command_line import output_of, sets
from finetuning import write_reviews

from keras_bert.core import files

pytestmark = pytest.mark.slow

RECIPE = {
    "model": {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
        "vocab_size": 300,
    },
    "objective": {"pair": "none"},
    "phases": [{"sequence_length": 16, "batch_size": 4, "max_predictions_per_seq": 3}],
    "optimizer": {"learning_rate": 0.01, "warmup_steps": 0},
    "training": {"steps": 4, "log_every": 1, "evaluate_every": 2, "checkpoint_every": 2, "evaluation_examples": 4},
}
TEXT = "".join(f"The {word} sees {number} birds. They were {word}s.\n\n" for number in range(40) for word in "ab")


def read(path):
    with files.open_file(path) as stream:
        return stream.read()


def chain(root, served, stops):
    """Every command on paths below `root`; pretraining is stopped after its first step if `stops`.

    Args:
        served: the folder to export to, which TensorFlow must not read as a pattern.

    Returns: the folder of all else that was written.
    """
    recipe, text, reviews = (files.join(root, name) for name in ("recipe.yaml", "text/a.txt", "reviews.jsonl"))
    names = "vocab.txt prepared run tuned google vectors.npz figures.json answers.jsonl".split()
    vocabulary, prepared, run, tuned, google, vectors, figures, answers = (
        files.join(root, "new", name) for name in names
    )
    output_of("vocab", "--input", files.join(root, "text"), "--size", "90", "--output", vocabulary)
    output_of("prepare", "--input", files.join(root, "*", "a.*"), "--vocab", vocabulary, "--output", prepared)
    size = len(read(vocabulary).splitlines())
    pretrain = ("pretrain", "--config", recipe, "--data", prepared, "--output", run, *sets(f"model.vocab_size={size}"))
    if stops:
        assert "after step 1," in output_of(*pretrain, "--max-minutes", "1e-9")
    said = output_of(*pretrain)
    assert ("Resuming from step 1." in said) == stops and f"Written: {run}." in said
    filled = output_of("fill", "--model", run, "The [MASK] sees birds.")
    assert f"{run}/model/model.safetensors: " in output_of("inspect", run)
    output_of("embed", "--model", run, "--input", text, "--output", vectors)
    table = ("--train", reviews, "--text", "text", "--label", "label")
    small = ("--steps", "3", *sets("input.max_length=16", "training.batch_size=8"))
    output_of("finetune", "--task", "text", "--init", run, *table, "--output", tuned, *small)
    output_of("evaluate", "--model", tuned, "--train", reviews, "--output", figures)
    output_of("predict", "--model", tuned, "--input", reviews, "--output", answers)
    output_of("export", "--model", tuned, "--output", served)
    output_of("convert", "--to", "google", run, google)
    assert output_of("fill", "--model", google, "--uncased", "The [MASK] sees birds.") == filled
    return files.join(root, "new")


@pytest.fixture(scope="module")
def plain_and_stored(tmp_path_factory):
    """What the commands wrote on a disk, without a stop, and in a store, with one."""
    inputs = tmp_path_factory.mktemp("inputs é [1]")  # A name that patterns and URLs could stumble over.
    (inputs / "text").mkdir()
    (inputs / "text" / "a.txt").write_text(TEXT, encoding="utf-8")
    (inputs / "recipe.yaml").write_text(yaml.safe_dump(RECIPE), encoding="utf-8")
    write_reviews(inputs / "reviews.jsonl", 24)
    files.copy_folder(str(inputs), "ram://any-store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keras_bert.tasks.pretraining.run.matmul_peak", lambda strategy, dtype: 1e9)  # It takes seconds.
        served = str(tmp_path_factory.mktemp("exports") / "served")
        plain = chain(str(inputs), served, stops=False)
        files.copy_folder(served, files.join(plain, "served"))
        yield plain, chain("ram://any-store", "ram://any-store/new/served", stops=True)


@pytest.mark.parametrize(
    "name",
    [
        "vocab.txt",
        "prepared/train/00000.tokens",
        "prepared/validation/meta.json",
        "run/model/model.safetensors",
        "run/model/tokenizer_config.json",
        "tuned/model/model.safetensors",
        "tuned/model/config.json",
        "figures.json",
        "answers.jsonl",
        "google/bert_config.json",
        "google/bert_model.ckpt.data-00000-of-00001",
    ],
)
def test_files_are_bit_for_bit_those_of_a_disk(plain_and_stored, name):
    plain, stored = (read(files.join(folder, name)) for folder in plain_and_stored)
    assert plain == stored and len(plain) > 20


def test_a_run_stopped_in_a_store_logs_every_step_once(plain_and_stored):
    """And with the numbers of a run that was never stopped."""
    plain, stored = (
        [without_clock(json.loads(line)) for line in read(files.join(folder, "run", "metrics.jsonl")).splitlines()]
        for folder in plain_and_stored
    )
    assert plain == stored and [line["step"] for line in plain] == [1, 2, 2, 3, 4, 4]


def test_a_store_holds_all_that_a_disk_does(plain_and_stored):
    """Pictures, TensorBoard's pages, the SavedModel with its warm-up requests; and nothing is written elsewhere."""

    def names(folder):
        found = (path[len(folder) + 1 :] for path in files.files_below(folder))
        # The names of events and plans contain times and paths, and a second start adds a checkpoint.
        return {name for name in found if not re.search(r"events\.out|/plans/|/checkpoints/", name)}

    plain, stored = map(names, plain_and_stored)
    assert stored == plain and {"served/1/saved_model.pb", "tuned/confusion_dev.png", "run/results.json"} < plain
    checkpoints = files.join(plain_and_stored[1], "run", "checkpoints")
    assert files.list_folder(checkpoints) == ["step-000000001", "step-000000002", "step-000000004"]
    assert not os.path.exists("ram:")  # What the builtin would make of such a path.


def test_vectors_and_exports_of_a_store_are_those_of_a_disk(plain_and_stored, tmp_path):
    plain, stored = (files.join(folder, "vectors.npz") for folder in plain_and_stored)
    stored = np.load(tf.io.gfile.GFile(stored, "rb"))  # As the command says.
    np.testing.assert_array_equal(np.load(plain)["embeddings"], stored["embeddings"])
    # TensorFlow itself loads nothing from a folder whose name looks like a pattern.
    files.copy_folder(files.join(plain_and_stored[0], "served", "1"), str(tmp_path / "served"))
    places = (str(tmp_path / "served"), files.join(plain_and_stored[1], "served", "1"))
    plain, stored = map(tf.saved_model.load, places)
    texts = tf.constant(["good w3", "bad"])
    plain, stored = (model.signatures["serving_default"](text=texts) for model in (plain, stored))
    for name, values in plain.items():
        np.testing.assert_array_equal(values, stored[name])


def test_a_run_goes_on_under_a_url(plain_and_stored, tmp_path):
    """`file://` finds what a plain path wrote: another kind of store, on the same files."""
    plain, url = plain_and_stored[0], f"file://{tmp_path}"
    files.copy_folder(files.join(plain, "run"), files.join(url, "run"))
    size = len(read(files.join(plain, "vocab.txt")).splitlines())
    places = ("--data", files.join(plain, "prepared"), "--output", files.join(url, "run"))
    recipe = f"file://{files.parent(plain)}/recipe.yaml"
    said = output_of("pretrain", "--config", recipe, *places, *sets(f"model.vocab_size={size}"), "--steps", "5")
    assert "Resuming from step 4." in said
    assert json.loads((tmp_path / "run/metrics.jsonl").read_text().splitlines()[-1])["step"] == 5
    assert max(os.listdir(tmp_path / "run/checkpoints")) == "step-000000005"
    asked = ("--input", f"file://{files.parent(plain)}/reviews.jsonl")
    answers = files.join(url, "new folder", "answers.jsonl")
    output_of("predict", "--model", f"file://{plain}/tuned", *asked, "--output", answers)
    assert read(f"{tmp_path}/new folder/answers.jsonl") == read(files.join(plain, "answers.jsonl"))


@pytest.mark.parametrize(
    ("root", "told"),
    [
        ("nosuch://bucket", "TensorFlow has no file system for nosuch://"),
        ("file:///sys/bucket", "Operation not permitted"),
    ],
)
def test_a_store_that_refuses_is_one_line(plain_and_stored, root, told):
    """A missing right or bucket is not the program's fault, so there is no traceback."""
    run = files.join(plain_and_stored[0], "run")
    for command in (("pretrain", "--output", f"{root}/run"), ("convert", "--to", "google", run, f"{root}/google")):
        line = output_of(*command, status=2).splitlines()[-1]
        assert re.fullmatch(f"Error: {root}.*: {told}.", line)
