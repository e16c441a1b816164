"""How many static shapes a run's batches get: more the longer it trains and the more a step costs."""

from types import SimpleNamespace

import numpy as np
import pytest
from finetuning import finetune_config
from tiny import without_dropout

from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.models.bert.config import BertConfig
from keras_bert.tasks.finetuning.shape_budget import affordable_shapes

TINY, BASE = without_dropout(num_hidden_layers=1), BertConfig(vocab_size=100)
MINI = BertConfig(vocab_size=100, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)


def shapes(model, examples=320, length=20, group=1, device="CPU:0", **settings):
    count = examples * group
    starts = np.arange(count + 1) * length
    groups = np.arange(examples + 1) * group if group > 1 else None
    rows = TokenRows(np.zeros(count * length, np.int32), starts, np.full(count, length), {}, group_starts=groups)
    config = finetune_config("model", **{"training.batch_size": 32, "training.epochs": 3, **settings})
    strategy = SimpleNamespace(extended=SimpleNamespace(worker_devices=(f"/job:localhost/device:{device}",)))
    return affordable_shapes(rows, config, model, strategy)


def test_a_step_that_costs_more_than_a_shape_affords_them_all():
    """In 30 steps, BERT-base takes seconds for each, while a tiny model takes longer to trace than to train."""
    assert shapes(BASE) == 8
    assert shapes(TINY) == 1


def test_more_steps_and_longer_rows_afford_more():
    counts = [shapes(TINY, **{"training.steps": steps}) for steps in (30, 130, 250, 5000)]
    assert counts == sorted(counts) and counts[0] == 1 and counts[-1] == 8
    few, longer = (shapes(MINI, length=length, **{"training.steps": 40}) for length in (4, 40))
    assert few < longer
    assert shapes(MINI, length=4, group=10, **{"training.steps": 40}) == longer  # The same number of tokens a step.


def test_compiling_costs_more_than_tracing():
    traced, compiled = (
        shapes(MINI, **{"training.steps": 130, "training.jit_compile": value}) for value in (False, True)
    )
    assert compiled < traced


@pytest.mark.parametrize("steps", [59, 60, 120, 1000])
def test_steps_of_an_accelerator_are_short(steps):
    assert shapes(BASE, device="GPU:0", **{"training.steps": steps}) == min(max(steps // 60, 1), 8)


def test_a_run_by_the_clock_may_have_them_all():
    assert shapes(TINY, **{"training.minutes": 1}) == 8


@pytest.mark.parametrize(("examples", "expected"), [(32 * 115, 8), (32 * 620, 20), (32 * 10_000, 32)])
def test_what_a_cpu_traces_once_has_less_padding(examples, expected):
    """Each shape still needs thirty batches, or an epoch's batches would be sorted by length alone."""
    assert shapes(BASE, examples) == expected
    assert shapes(BASE, examples, **{"training.jit_compile": "auto", "training.minutes": 3}) == expected
    assert shapes(BASE, examples, **{"training.jit_compile": True}) == 8
    assert shapes(BASE, examples, device="GPU:0") <= 8
