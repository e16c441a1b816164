"""Fine-tuning with `training.adversarial`; what a step computes is in tests/training/test_adversary.py."""

import pytest
from finetuning import finetune_config

from keras_bert.core.errors import UserError
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.training.metrics_log import read_metrics

SIZE = 0.3


@pytest.mark.parametrize("trained", [{}, {"training.lora_rank": 2}, {"training.freeze": True}], ids=str)
def test_fine_tuning_learns_otherwise(init, glue, tmp_path, trained):
    """With LoRA or a frozen encoder the embeddings have no gradient of their own."""
    losses = {}
    for size in (0.0, SIZE):
        path = tmp_path / str(size)
        overrides = {"data.folder": glue, "training.steps": 4, "training.log_every": 1, "training.adversarial": size}
        FinetuningRuns(finetune_config(init, **overrides, **trained)).one(str(path))
        losses[size] = [line["loss"] for line in read_metrics(str(path / "metrics.jsonl")) if "loss" in line]
    assert losses[0.0][0] == pytest.approx(losses[SIZE][0], rel=1e-5)
    assert losses[0.0][-1] != pytest.approx(losses[SIZE][-1], rel=1e-5)


def test_features_of_a_frozen_encoder_are_not_changed():
    settings = {"task": "ner", "features.kind": "last", "training.adversarial": SIZE}
    with pytest.raises(
        UserError, match="training.adversarial: needs an encoder that is trained. Received: 'features.kind last'"
    ):
        finetune_config("init", **settings)
