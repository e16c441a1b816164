"""The runs of a benchmark: a task without data is left out, and any other error is one."""

import json

import pytest
from finetuning import finetune_config, write_sst2, write_tiny_bert
from said import listen

from keras_bert.core.errors import UserError
from keras_bert.tasks.finetuning.runs import FinetuningRuns, finetune_benchmark


@pytest.fixture
def recipes(tmp_path):
    """Of a task without files and one that has them."""
    init, data = write_tiny_bert(tmp_path / "bert"), write_sst2(tmp_path / "glue", train=8, dev=8)
    return {task: finetune_config(init, task, **{"data.folder": data}) for task in ("rte", "sst2")}


def test_a_task_without_data_is_left_out(recipes, tmp_path, monkeypatch):
    monkeypatch.setattr(FinetuningRuns, "one", lambda self, path: {"task": self.problem.task.name})
    said = listen()
    assert finetune_benchmark("glue", recipes, str(tmp_path / "run")) == {"sst2": {"task": "sst2"}}
    written = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    assert list(written["tasks"]) == ["sst2"] and "train.tsv, for the split 'train'" in written["left_out"]["rte"]
    assert any(line.startswith("Skipped rte: ") for line in said)
    with pytest.raises(UserError, match="glue: needs the data of at least one task"):
        finetune_benchmark("glue", {"rte": recipes["rte"]}, str(tmp_path / "none"))


def test_data_that_is_wrong_is_not_left_out(recipes, tmp_path):
    """The benchmark ended well, without the task that the user wanted most."""
    with open(tmp_path / "glue" / "SST-2" / "dev.tsv", "a", encoding="utf-8") as stream:
        stream.write("no label\n")
    with pytest.raises(UserError, match="dev.tsv line 10: needs 2 cells"):
        finetune_benchmark("glue", recipes, str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()
