"""Two runs are compared by all that either holds."""

import json

import numpy as np
import safetensors.numpy
from click.testing import CliRunner

from tools import compare_runs


def test_what_only_one_run_has_differs(tmp_path, monkeypatch):
    """A weight that the other run lacks, as with another head, used to end the comparison in a traceback."""
    monkeypatch.setattr(compare_runs, "_last_checkpoint", lambda run: {})
    runs = {"one": ["encoder", "head"], "other": ["encoder", "pooler"]}
    for name, weights in runs.items():
        (tmp_path / name / "model").mkdir(parents=True)
        arrays = {weight: np.ones(3, "float32") for weight in weights}
        safetensors.numpy.save_file(arrays, tmp_path / name / "model" / "model.safetensors")
        (tmp_path / name / "metrics.jsonl").write_text(json.dumps({"step": 1, "loss": 2.0}) + "\n")
        # A figure that was not finite is null.
        (tmp_path / name / "results.json").write_text(json.dumps({name: 1, "eval_perplexity": None}))
    found = {what: different for what, _, different in compare_runs.compare(*(str(tmp_path / name) for name in runs))}
    assert found["tensors of model.safetensors"] == ["head", "pooler"]
    assert found["figures of results.json"] == ["one", "other"]
    assert found["lines of metrics.jsonl"] == []


def test_two_figures_that_are_nan_are_the_same():
    one, other = json.loads('[{"loss": NaN}, {"loss": NaN}]')
    assert compare_runs._is_same(one, other) and not compare_runs._is_same(one, {"loss": 1.0})


def test_what_is_no_finished_run_gets_one_line(tmp_path):
    """A traceback would have the exit status of runs that differ."""
    result = CliRunner().invoke(compare_runs.main, [str(tmp_path), str(tmp_path)])
    assert result.exit_code == 2 and "needs the folder of one finished run" in result.output
