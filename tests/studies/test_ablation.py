"""The ablation: its plan, and the table beside the papers' figures."""

import json
import os

import pytest
import yaml
from command_line import give

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.config.studies import AblationPlan, VariantPlan
from keras_bert.core import settings
from keras_bert.core.yaml_and_json import read_yaml
from keras_bert.data.shards.shard_format import FORMAT, KINDS
from keras_bert.studies.restoration import LOST, MOVED, NATS

PLAN = """
recipe: five_minutes
variants:
  base: {set: {objective.pair: nsp}, source: The paper, published: {MRPC: 86.7}}
  no_nsp: {set: {objective.pair: none}}
  no_nsp_frozen: {pretrained_as: no_nsp, finetuning: {training.freeze: true}}
tasks:
  mrpc: {folder: glue, rates: [1.0e-4, 3.0e-4]}
"""


@pytest.mark.parametrize("name", ["ablation", "corruptions"])
def test_a_plan_that_is_shipped_can_be_trained_on_the_same_tokens(name):
    """A setting that does not exist, or a variant that sees more text, would come to light only after hours."""
    plan = settings.from_mapping(AblationPlan, read_yaml(find_config("studies", name)))
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


SCORES = {"base": {1e-4: [0.5, 0.6], 3e-4: [0.9, 0.1]}, "no_nsp": {1e-4: [0.2, 0.3], 3e-4: [0.4, 0.4]}}
SCORES["no_nsp_frozen"] = SCORES["base"]


def scripted(folder, changes, command, options):
    """Stands in for a run, and writes its results."""
    *_, name, seed = folder.removesuffix(f"/rate-{changes.get('optimizer.learning_rate', 0):g}").split("/")
    number = int(seed.removeprefix("seed-"))
    if command == "pretrain":
        results = {"steps": 10, "eval_mask_token_loss": 6.0 - number, "eval_mask_token_unigram_loss": 7.0}
    else:
        f1 = SCORES[name][changes["optimizer.learning_rate"]][number - 1]
        results = {
            "main_metric": "f1",
            "per_cent": False,
            "seeds": [int(one) for one in options["--seeds"].split(",")],
            "splits": {"dev": {"f1": f1}},
            "over_seeds": {"dev": {"f1": {"values": [f1]}}},
            "baseline": {"dev": {"f1": 0.8}},
        }
    os.makedirs(folder)
    with open(f"{folder}/results.json", "w") as stream:
        json.dump(results, stream)
    return results


def ablation_line(folder, *more):
    for name in ("glue", "other"):
        (folder / name).mkdir(exist_ok=True)
    line = ["study", "ablation", "--plan", folder / "plan.yaml", "--text", "prepared", "--data", folder, "--output"]
    line += [folder / "out", "--pretraining-seeds", 2, "--seeds", 1, "--recipe", "wiki_mini", *more]
    return [str(argument) for argument in line]


def test_each_variant_has_its_better_rate_over_all_seeds_and_the_papers_figures(tmp_path, monkeypatch):
    (tmp_path / "plan.yaml").write_text(PLAN)
    output = tmp_path / "out"
    monkeypatch.setattr("keras_bert.studies.runs.run_command", scripted)
    result = give(*ablation_line(tmp_path, "--set", "training.steps=9"))
    assert not (output / "pretrained" / "no_nsp_frozen").exists()  # It takes the runs of no_nsp.
    assert (output / "ablation.md").read_text().splitlines()[2:] == [
        "|  | nats below the unigram | mrpc, f1 | *MRPC* |",
        "| --- | --- | --- | --- |",
        "| most frequent answer | – | 80.0 | – |",
        "| base | 2.500 (2.000–3.000) | 55.0 (50.0–60.0) | 86.7 |",
        "| no nsp | 2.500 (2.000–3.000) | 40.0 (40.0–40.0) | – |",
        "| no nsp frozen | 2.500 (2.000–3.000) | 55.0 (50.0–60.0) | – |",
        "",
        "Figures in italics were published for models of other sizes:",
        "",
        "- base: The paper",
        "",
        "![ablation](ablation.png)",
    ]
    monkeypatch.setattr("keras_bert.studies.runs.run_command", lambda *_: pytest.fail("Trained again."))
    again = give(*ablation_line(tmp_path, "--set", "training.steps=9"))
    assert again.output == result.output


def test_variants_with_other_vocabularies_are_compared_by_characters(tmp_path, monkeypatch):
    """The longer the pieces, the less nats per piece can be compared."""
    (tmp_path / "plan.yaml").write_text(PLAN)

    def with_shards(folder, changes, command, options):
        results = scripted(folder, changes, command, options)
        if command == "pretrain":
            name, tokens = ("base", 200) if "/base/" in folder else ("no_nsp", 400)
            counts = {"documents": 1, "sentences": 1, "tokens": tokens}
            shard = {"name": "00000", **counts, "sha256": dict.fromkeys(KINDS, "")}
            meta = {"format": FORMAT, "vocabulary": name, "vocab_size": 9, "token_dtype": "uint16", "lower_case": True}
            os.makedirs(f"{folder}/data/shards/validation")
            with open(f"{folder}/data/shards/validation/meta.json", "w") as stream:
                json.dump({**meta, "unknown_tokens": 0, **counts, "shards": [shard]}, stream)
        return results

    monkeypatch.setattr("keras_bert.studies.runs.run_command", with_shards)
    monkeypatch.setattr("keras_bert.studies.ablation.held_out_characters", lambda run: 1000)
    # Variants added later may come first: the text is the same.
    give(*ablation_line(tmp_path, "--only", "no_nsp_frozen", "--only", "base"))
    give(*ablation_line(tmp_path))
    lines = (tmp_path / "out" / "ablation.md").read_text().splitlines()
    assert lines[2] == "|  | nats below the unigram | bits per character | mrpc, f1 | *MRPC* |"
    # The losses of the two seeds, 5 and 4 nats, times the pieces per character.
    assert lines[5].split(" | ")[2] == "1.298 (1.154–1.443)"
    assert lines[6].split(" | ")[2] == "2.597 (2.308–2.885)"


def test_corruptions_are_compared_by_what_they_restore(tmp_path, monkeypatch):
    """A loss over all of a text says how well it is copied."""
    (tmp_path / "plan.yaml").write_text(PLAN)

    def decoding(folder, changes, command, options):
        results = scripted(folder, changes, command, options)
        if command == "pretrain":
            with open(f"{folder}/results.json", "w") as stream:
                json.dump({"steps": 10, "eval_decoded_loss": 2.0}, stream)
        return results

    figures = iter([{LOST: 0.25, NATS: 3.0, MOVED: 0.5}, {MOVED: 0.75}] * 2)
    monkeypatch.setattr("keras_bert.studies.runs.run_command", decoding)
    monkeypatch.setattr("keras_bert.studies.ablation.restoration", lambda run: next(figures))
    give(*ablation_line(tmp_path, "--only", "base", "--only", "no_nsp"))
    lines = (tmp_path / "out" / "ablation.md").read_text().splitlines()
    assert lines[2].startswith(f"|  | nats below the unigram | {LOST} | {NATS} | {MOVED} | mrpc, f1")
    assert lines[5].startswith("| base | – | 0.250 (0.250–0.250) | 3.000 (3.000–3.000) | 0.500 (0.500–0.500) |")
    assert lines[6].startswith("| no nsp | – | – | – | 0.750 (0.750–0.750) |")
    again = give(*ablation_line(tmp_path, "--only", "base", "--only", "no_nsp"))  # This measures nothing anew.
    assert "0.750" in again.output


def test_runs_made_with_other_settings_are_refused(tmp_path, monkeypatch):
    """Otherwise they would be shown as if they had been made with the settings given now."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    monkeypatch.setattr("keras_bert.studies.runs.run_command", scripted)
    give(*ablation_line(tmp_path))
    more = give(*ablation_line(tmp_path, "--set", "training.steps=9"), status=2)
    assert (
        "out/pretrained/base/seed-1.json: was made with other settings (--set training.steps: was None, now '9'). "
        in more.output
    )
    (tmp_path / "plan.yaml").write_text(PLAN.replace("folder: glue", "folder: other"))
    other = give(*ablation_line(tmp_path), status=2)
    changed = f"(--data-dir: was '{tmp_path}/glue', now '{tmp_path}/other')"
    assert f"rate-0.0001.json: was made with other settings {changed}. Give another" in other.output


def test_a_task_without_its_files_is_refused_before_anything_is_trained(tmp_path):
    (tmp_path / "plan.yaml").write_text(PLAN.replace("folder: glue", "folder: glues"))
    told = give(*ablation_line(tmp_path), status=2)
    assert f"{tmp_path}/glues: needs the files of mrpc. Received: no folder." in told.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "change, message",
    [
        ("variants: {base: {sets: {}}}", "variants.base.sets: no such setting. The nearest is variants.base.set"),
        ("variants: {a: {pretrained_as: b}}", "variants.a.pretrained_as: needs a variant that is pretrained"),
        ("variants: {a: {pretrained_as: b, recipe: demo}}", "variants.a.pretrained_as: needs a variant without set"),
        ("tasks: {mrpc: {folder: glue, rates: []}}", "tasks.mrpc.rates: needs at least one learning rate"),
        ("tasks: {mrpc: {folder: glue, rates: [1.0e-4, 0]}}", "tasks.mrpc.rates.1: needs a value above 0. Received: 0"),
        ("tasks: {mrpc: {folder: glue, rates: [-1]}}", "tasks.mrpc.rates.0: needs a value above 0. Received: -1"),
        ("tasks: {mrpc: {folder: glue, rates: [1], seeds: 0}}", "tasks.mrpc.seeds: needs a value above 0"),
        ("variants: {a: {set: {training.seed: 2}}}", "variants.a.set.training.seed: needs no value, because the study"),
        ("tasks: {mrpc: {folder: g, rates: [1], set: {init: x}}}", "tasks.mrpc.set.init: needs no value"),
        ("tasks: {mrpc: {folder: g, rates: [1], metrics: [f1]}}", "tasks.mrpc.metrics: no such setting"),
    ],
)
def test_a_wrong_plan_is_named_by_its_key(tmp_path, change, message):
    changed = {**yaml.safe_load(PLAN), **yaml.safe_load(change)}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(changed))
    line = ["study", "ablation", "--plan", str(tmp_path / "plan.yaml"), "--text", "a", "--data", "b", "--output", "c"]
    result = give(*line, status=2)
    assert message in result.output, result.output


@pytest.mark.parametrize("changes", [{3: 1}, {"training": {3: 1}}])
def test_names_of_settings_are_text(changes):
    for field in ("set", "finetuning"):
        with pytest.raises(ValueError, match=f"{field}: needs names that are text. Received: 3"):
            VariantPlan(**{field: changes})
