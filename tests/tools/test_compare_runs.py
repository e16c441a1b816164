"""Two runs are compared by all that either of them holds."""

import json

import numpy as np
import safetensors.numpy

from tools import compare_runs


def test_what_only_one_run_has_differs(tmp_path, monkeypatch):
    """A weight that the other run lacked, as with another head, ended the comparison in a traceback."""
    monkeypatch.setattr(compare_runs, "_last_checkpoint", lambda run: {})
    runs = {"one": ["encoder", "head"], "other": ["encoder", "pooler"]}
    for name, weights in runs.items():
        (tmp_path / name / "model").mkdir(parents=True)
        arrays = {weight: np.ones(3, "float32") for weight in weights}
        safetensors.numpy.save_file(arrays, tmp_path / name / "model" / "model.safetensors")
        (tmp_path / name / "metrics.jsonl").write_text(json.dumps({"step": 1, "loss": 2.0}) + "\n")
        (tmp_path / name / "results.json").write_text(json.dumps({name: 1}))
    found = {what: different for what, _, different in compare_runs.compare(*(str(tmp_path / name) for name in runs))}
    assert found["tensors of model.safetensors"] == ["head", "pooler"]
    assert found["figures of results.json"] == ["one", "other"]
    assert found["lines of metrics.jsonl"] == []
