"""tools/evaluate_edge.py scores exports as `evaluate` scores the model."""

import argparse

import keras
import pytest
from finetuning import VOCABULARY, write_sst2
from tiny import random_weights, without_dropout

from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.network import BertForSequenceClassification
from tools import evaluate_edge


def test_a_quantization_that_there_is_not_is_named(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["evaluate_edge.py", "--model", "model", "--quantize", "int8,int4"])
    with pytest.raises(SystemExit):
        evaluate_edge.main()
    assert "--quantize: needs some of none, float16, int8. Received: int4." in capsys.readouterr().err


@pytest.mark.slow
def test_an_export_in_float32_has_the_scores_of_the_model(tmp_path, capsys):
    """The model's answers are mixed, so another order of the rows would show."""
    keras.utils.set_random_seed(0)
    model = BertForSequenceClassification(without_dropout(max_position_embeddings=32, num_hidden_layers=1), 2)
    random_weights(model, seed=3, scale=0.5)
    head, task = ClassificationConfig(("negative", "positive")), {"task": "sst2", "max_length": 24}
    write_model_folder(str(tmp_path / "model"), model, VOCABULARY, lower_case=True, head=head, task=task)
    arguments = {"data_dir": write_sst2(tmp_path), "split": "dev", "quantize": "none,int8", "threads": 1}
    evaluate_edge.compare(argparse.Namespace(model=str(tmp_path / "model"), **arguments))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("dev ")]
    accuracies = [float(line.partition("accuracy ")[2].split()[0]) for line in lines]
    assert len(lines) == 3 and "the model" in lines[0] and "litert none" in lines[1] and "litert int8" in lines[2]
    assert accuracies[0] == accuracies[1] and 20 < accuracies[0] < 80
    assert abs(accuracies[2] - accuracies[0]) < 10
