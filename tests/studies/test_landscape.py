"""The loss around the end of a run: directions, the plane, and the study."""

import json
import os
import shutil

import keras
import numpy as np
import pytest
from command_line import give
from finetuning import write_sst2, write_tiny_bert

from keras_bert.studies.landscape import _BATCH, ENDS, LossPlane, filter_normalized, planes_picture, steps, table
from keras_bert.tasks.finetuned_model import FinetunedModel


def test_directions_are_as_long_as_the_weights_filter_by_filter():
    """The columns of a kernel, the rows of a table; biases stay."""
    random = np.random.default_rng(0)
    weights = random.normal(size=(5, 3)) * [1.0, 10.0, 0.0]
    for name in ("kernel", "recurrent_kernel"):
        noise = filter_normalized(random, name, weights)
        np.testing.assert_allclose(np.linalg.norm(noise, axis=0), np.linalg.norm(weights, axis=0))
    table_noise = filter_normalized(random, "word_embeddings", weights)
    np.testing.assert_allclose(np.linalg.norm(table_noise, axis=1), np.linalg.norm(weights, axis=1))
    for shape in (3, (2, 3)):
        assert not filter_normalized(random, "bias", np.ones(shape)).any()


def test_the_loss_of_a_bowl_grows_with_the_square_of_the_distance_and_the_weights_come_back():
    """Two columns of lengths 2 and 3; the loss is their squared distance from the start, 13x² along an axis."""
    layer = keras.layers.Dense(2, use_bias=False)
    model = keras.Sequential([keras.Input((2,)), layer])
    start = np.diag([2.0, 3.0]).astype("float32")
    layer.kernel.assign(start)
    plane = LossPlane(model, lambda: float(np.sum((np.array(layer.kernel) - start) ** 2)))
    assert plane(0.0, 0.0) == 0.0
    assert plane(0.5, 0.0) == pytest.approx(13 * 0.25, rel=1e-5)
    assert plane(0.0, -1.0) == pytest.approx(13.0, rel=1e-5)
    np.testing.assert_array_equal(np.array(layer.kernel), start)


def test_the_table_and_the_grid():
    assert steps(0.5, 3) == [-0.5, 0.0, 0.5]
    runs = {"scratch": {"splits": {"dev": {"f1": 0.5}}, "main_metric": "f1", "per_cent": False}}
    grids = {"scratch": [[4.0, 3.0, 4.0], [1.5, 1.0, 1.9], [4.0, 2.0, 4.0]]}
    assert list(table(runs, grids))[-1] == "| scratch | dev f1 50.0 | 1.000 | 3.500 | 33% |"
    assert planes_picture({**grids, "flat": [[1.0] * 3] * 3}, 0.5, "title").startswith(b"\x89PNG")


@pytest.mark.parametrize("lost", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_leaves_a_blank(lost):
    """Far from the end of a run a loss may overflow, and the picture comes after all runs and measurements."""
    for grid in ([[1.0, 2.0, 1.0], [2.0, 1.0, lost], [1.0, 2.0, 1.0]], [[lost] * 3] * 3):
        assert planes_picture({"pretrained": grid, "scratch": grid}, 0.5, "title").startswith(b"\x89PNG")


def scripted(score):
    """Stands in for a run, and writes its folder."""

    def run_command(folder, changes, command, options):
        os.makedirs(folder)
        results = {"splits": {"dev": {"f1": score}}, "main_metric": "f1", "per_cent": False}
        for name, content in (("results.json", results), ("metrics.jsonl", {"step": 1, "loss": 1.0})):
            with open(f"{folder}/{name}", "w") as stream:
                stream.write(json.dumps(content) + "\n")
        return results

    return run_command


def test_a_plane_belongs_to_its_run_and_has_a_middle(tmp_path, monkeypatch):
    """A plane of another run, or on a grid without a middle, would be shown as the loss around this run's end."""
    line = ["study", "landscape", "--task", "sst2", "--init", "bert", "--output", str(tmp_path / "out"), "--points"]
    even = give(*line, "4", status=2)
    assert "--points: needs an odd number, for a middle. Received: 4. Give 5." in even.output
    monkeypatch.setattr("keras_bert.studies.runs.run_command", scripted(0.5))
    monkeypatch.setattr("keras_bert.studies.landscape.training_plane", lambda *_: lambda x, y: 1 + x * x + y * y)
    first = give(*line, "3")
    assert "| scratch | dev f1 50.0 | 1.000 | 1.375 | 100% |" in first.output
    shutil.rmtree(tmp_path / "out" / "scratch")
    monkeypatch.setattr("keras_bert.studies.runs.run_command", scripted(0.6))
    other = give(*line, "3", "--set-scratch", "training.steps=9", status=2)
    assert "scratch/row-0.json: was made with other settings (run.scores.dev.f1: was 0.5, now 0.6; " in other.output
    assert "run.--set training.steps: was None, now '9')" in other.output


def test_the_help_says_what_examples_are_rounded_to():
    """1 to 63 all take one batch."""
    told = " ".join(give("study", "landscape", "--help").output.split())
    assert f"rounded down to whole batches of {_BATCH}, at least one." in told


@pytest.mark.slow
def test_the_study_from_the_command_line_and_once_more(tmp_path, monkeypatch):
    """The middle of each plane is the loss of the model that the run exported; a second start measures nothing."""
    bert = write_tiny_bert(tmp_path / "bert")
    data = write_sst2(tmp_path / "glue", train=96, dev=16)
    line = ["study", "landscape", "--task", "sst2", "--init", bert, "--data-dir", data, "--examples", "96"]
    line += ["--points", "3", "--output", str(tmp_path / "out"), "--set", "training.steps=6"]
    line += ["--set", "training.batch_size=8", "--set", "input.max_length=24", "--set", "training.jit_compile=false"]
    line += ["--set-scratch", "optimizer.learning_rate=1e-2"]
    first = give(*line)
    text = (tmp_path / "out" / "landscape.md").read_text()
    assert "| pretrained | dev accuracy " in text and "| scratch | dev accuracy " in text
    for name in ENDS:
        rows = [json.loads((tmp_path / "out" / "parts" / name / f"row-{n}.json").read_text()) for n in range(3)]
        exported = FinetunedModel(str(tmp_path / "out" / name))
        _, figures = exported.evaluate.outputs(exported.problem.rows("train"))
        assert rows[1]["result"][1] == pytest.approx(figures["loss"], rel=1e-4)
        assert len({value for row in rows for value in row["result"]}) == 9
    monkeypatch.setattr(LossPlane, "__init__", lambda *_: pytest.fail("Measured again."))
    again = give(*line)
    assert again.stdout == first.stdout  # Bars, which appear on stderr if it takes long, do not matter.
