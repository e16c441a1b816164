"""The ablation: its plan, and the table beside the papers' figures."""

import json

import pytest
from click.testing import CliRunner

from keras_bert import settings
from keras_bert.cli import main
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.config.studies import AblationPlan

PLAN = """
recipe: five_minutes
variants:
  base: {set: {objective.pair: nsp}, source: The paper, published: {MRPC: 86.7}}
  no_nsp: {set: {objective.pair: none}}
  no_nsp_frozen: {pretrained_as: no_nsp, finetuning: {training.freeze: true}}
tasks:
  mrpc: {folder: glue, rates: [1.0e-4, 3.0e-4]}
"""


def test_the_plan_that_is_shipped_can_be_trained_on_the_same_tokens():
    """A setting that does not exist, or a variant that sees more text, would show after hours."""
    plan = settings.from_mapping(AblationPlan, settings.read_yaml(find_config("studies", "ablation")))
    tokens = set()
    for name, variant in plan.variants.items():
        variant = plan.variants[variant.pretrained_as or name]
        recipe = find_config("pretrain", variant.recipe or plan.recipe)
        config = PretrainConfig.from_file(recipe, {**plan.set, **variant.set})
        phases = [phase.share * phase.batch_size * phase.sequence_length for phase in config.phases]
        assert not config.training.minutes
        tokens.add(config.training.steps * sum(phases))
    assert len(tokens) == 1
    for task, planned in plan.tasks.items():
        recipe = find_config("finetune", planned.task or task)
        for variant in plan.variants.values():
            config = FinetuneConfig.from_file(recipe, {**planned.set, **variant.finetuning})
            assert config.training.batch_size > 0


def write_results(folder, **values):
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(values))


def test_each_variant_has_its_better_rate_over_all_seeds_and_the_papers_figures(tmp_path):
    """Its runs are finished, so that the command only tells of them."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    output = tmp_path / "out"
    scores = {"base": {1e-4: [0.5, 0.6], 3e-4: [0.9, 0.1]}, "no_nsp": {1e-4: [0.2, 0.3], 3e-4: [0.4, 0.4]}}
    scores["no_nsp_frozen"] = scores["base"]
    for name, by_rate in scores.items():
        for seed in (1, 2):
            nats = {"eval_mask_token_loss": 6.0 - seed, "eval_mask_token_unigram_loss": 7.0}
            if name != "no_nsp_frozen":  # It has the runs of no_nsp.
                write_results(output / "pretrained" / name / f"seed-{seed}", steps=10, **nats)
            for rate, values in by_rate.items():
                f1 = values[seed - 1]
                write_results(
                    output / "mrpc" / name / f"seed-{seed}" / f"rate-{rate:g}",
                    main_metric="f1",
                    per_cent=False,
                    seeds=[1],
                    splits={"dev": {"f1": f1}},
                    over_seeds={"dev": {"f1": {"values": [f1]}}},
                    baseline={"dev": {"f1": 0.8}},
                )
    line = ["study", "ablation", "--plan", tmp_path / "plan.yaml", "--text", "prepared", "--data", "data"]
    line += [
        "--output",
        output,
        "--pretraining-seeds",
        2,
        "--seeds",
        1,
        "--recipe",
        "wiki_mini",
        "--set",
        "training.steps=9",
    ]
    result = CliRunner().invoke(main, [str(argument) for argument in line])
    assert result.exit_code == 0, result.output
    assert (output / "ablation.md").read_text().splitlines()[2:] == [
        "|  | nats below the unigram | mrpc, f1 | *MRPC* |",
        "| --- | --- | --- | --- |",
        "| most frequent answer | – | 80.0 | – |",
        "| base | 2.500 (2.000–3.000) | 55.0 (50.0–60.0) | 86.7 |",
        "| no nsp | 2.500 (2.000–3.000) | 40.0 (40.0–40.0) | – |",
        "| no nsp frozen | 2.500 (2.000–3.000) | 55.0 (50.0–60.0) | – |",
        "",
        "In italics, what was published for models of other sizes:",
        "",
        "- base: The paper",
        "",
        "![ablation](ablation.png)",
    ]


@pytest.mark.parametrize(
    "change, message",
    [
        ("variants: {base: {sets: {}}}", "variants.base.sets: no such setting. The nearest is variants.base.set"),
        ("variants: {a: {pretrained_as: b}}", "variants.a.pretrained_as: needs a variant that is pretrained"),
        ("variants: {a: {pretrained_as: b, recipe: demo}}", "variants.a.pretrained_as: needs a variant without set"),
        ("tasks: {mrpc: {folder: glue, rates: []}}", "tasks.mrpc.rates: needs at least one learning rate"),
        ("tasks: {mrpc: {folder: glue, rates: [1], seeds: 0}}", "tasks.mrpc.seeds: needs a number of at least 1"),
    ],
)
def test_a_wrong_plan_is_named_by_its_key(tmp_path, change, message):
    (tmp_path / "plan.yaml").write_text(f"{PLAN}\n{change}")
    line = ["study", "ablation", "--plan", str(tmp_path / "plan.yaml"), "--text", "a", "--data", "b", "--output", "c"]
    result = CliRunner().invoke(main, line)
    assert result.exit_code == 2 and message in result.output, result.output
