"""What a pilot costs: where its curve falls below the unigram by a given amount, in tokens and CPU seconds."""

import json

import pytest

from keras_bert.cli.options import set_by_key
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.config.studies import PilotsPlan
from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_yaml
from keras_bert.studies import study
from keras_bert.studies.pilots import described, pilots, read, table
from keras_bert.studies.study import StudyFolder, crossing, curves_picture

PHASES = [
    {"share": 0.5, "sequence_length": 16, "batch_size": 4, "max_predictions_per_seq": 3},
    {"share": 0.5, "sequence_length": 16, "batch_size": 8, "max_predictions_per_seq": 3},
]


def write_run(folder, below, settings_given=None):
    """A finished run of 40 steps, validated every 10, at 3 CPU seconds each; None stands for a model without [MASK]."""
    folder.mkdir(parents=True)
    config = PretrainConfig.from_mapping(settings_given or {"phases": PHASES, "training": {"steps": 40}})
    (folder / "config.yaml").write_text(settings.to_yaml(config))
    lines = []
    for number, value in enumerate(below, 1):
        lines += [{"step": 10 * number, "cpu_seconds": 3.0, "loss": 1.0}]
        figures = {"step": 10 * number, "eval_perplexity": 50.0}
        if value is not None:
            figures |= {"eval_mask_token_loss": 7.0 - value, "eval_mask_token_unigram_loss": 7.0}
        lines += [figures]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_curve_counts_tokens_by_phase_and_time_of_training_alone(tmp_path):
    write_run(tmp_path / "run", [0.0, 0.4, 0.8, 1.2])
    curve, figures = read(str(tmp_path / "run"))
    tokens = [10 * 64, 20 * 64, 20 * 64 + 10 * 128, 20 * 64 + 20 * 128]
    assert [(point[0], point[1]) for point in curve] == list(zip(tokens, (3.0, 6.0, 9.0, 12.0)))
    assert [point[2] for point in curve] == pytest.approx([0.0, 0.4, 0.8, 1.2])
    assert figures["eval_perplexity"] == 50.0
    by_tokens, by_time = ([(point[axis], point[2]) for point in curve] for axis in (0, 1))
    assert crossing(by_tokens, 0.5) == pytest.approx(20 * 64 + 0.25 * 10 * 128)
    assert crossing(by_time, 0.5) == pytest.approx(6.75)
    assert crossing(by_time, 2.0) is None


def test_several_phases_of_so_many_minutes_are_refused_before_they_are_trained(tmp_path, monkeypatch):
    """Otherwise all their steps would be counted as those of the first phase."""
    monkeypatch.setattr("keras_bert.studies.runs.run_command", lambda *_: pytest.fail("Trained."))
    plan = PilotsPlan("demo", {"base": {}, "ramp": {"phases": PHASES}}, {"training.minutes": 5})
    message = r"pilots\.ramp: needs training\.minutes 0 with several phases, .* Received: 5 and 2 phases\."
    with pytest.raises(UserError, match=message):
        pilots(StudyFolder(str(tmp_path / "out")), plan, plan.pilots, "prepared", 1)
    assert not (tmp_path / "out").exists()


def test_what_a_pilot_lacks_is_named_before_anything_is_trained(tmp_path, monkeypatch):
    """Otherwise the other pilots would train for hours first."""
    monkeypatch.setattr("keras_bert.studies.runs.run_command", lambda *_: pytest.fail("Trained."))
    plan = PilotsPlan("demo", {"base": {}, "units": {"masking.unit": "pmi"}})
    monkeypatch.setattr("keras_bert.tasks.pretraining.prepared_shards.is_prepared", lambda path: path == "prepared")
    for data, message in (
        ("prepared", "prepared: needs collocations.txt, .* `prepare` again with --collocations 40000. .* with --only"),
        ("text", "data.collocations: needs a number for masking.unit pmi, .* Set data.collocations=40000. .* --only"),
    ):
        with pytest.raises(UserError, match=message):
            pilots(StudyFolder(str(tmp_path / "out")), plan, plan.pilots, data, 1)
    misspelt = PilotsPlan("demo", {"base": {}, "units": {"masking.units": "word"}})
    with pytest.raises(UserError, match=r"^pilots\.units: masking\.units: no such setting"):
        pilots(StudyFolder(str(tmp_path / "out")), misspelt, misspelt.pilots, "text", 1)
    assert not (tmp_path / "out").exists()


def test_one_phase_of_so_many_minutes_is_counted_by_its_steps(tmp_path):
    """training.steps does not matter here."""
    changes = {"phases": [{**PHASES[0], "share": 1.0}], "training": {"steps": 20, "minutes": 1}}
    write_run(tmp_path / "run", [0.0, 0.4, 0.8, 1.2], changes)
    curve, _ = read(str(tmp_path / "run"))
    assert [tokens for tokens, _, _ in curve] == [640, 1280, 1920, 2560]


def test_a_pilot_without_a_masked_lm_or_a_validation_has_dashes(tmp_path):
    """Otherwise it would fail after all training."""
    write_run(tmp_path / "causal", [None, None])
    write_run(tmp_path / "unvalidated", [])
    causal, none = (read(str(tmp_path / name)) for name in ("causal", "unvalidated"))
    *_, first, second = table({"causal": [causal], "unvalidated": [none]})
    assert first == "| causal |" + " – |" * 6 + " 6 | – | 50.0 |"
    assert second == "| unvalidated |" + " – |" * 9
    assert curves_picture({"": {"causal": causal[0]}}, "", "").startswith(b"\x89PNG")


def test_a_goal_that_one_seed_misses_has_no_median(tmp_path):
    for seed, last in ((1, 1.2), (2, 0.9)):
        write_run(tmp_path / "base" / f"seed-{seed}", [0.0, 0.4, 0.8, last])
    header, rule, row = table({"base": [read(str(tmp_path / "base" / f"seed-{seed}")) for seed in (1, 2)]})
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert header.count("|") == rule.count("|") == row.count("|")
    assert cells[:5] == ["base", "0.00 (0.00–0.00)", "7 (7–7)", "–", "–"]
    assert described([3.0], "{:.0f}".format) == "3"


def planned(text, path):
    path.write_text(f"recipe: demo\n{text}", encoding="utf-8")
    return settings.from_mapping(PilotsPlan, read_yaml(path))


def test_a_pilot_without_changes_needs_no_braces(tmp_path):
    """`base:` alone is null in YAML, and must not end in a traceback."""
    assert planned("pilots:\n  base:\n", tmp_path / "plan.yaml").pilots == {"base": {}}


def test_a_section_of_a_plan_keeps_what_the_plan_does_not_name(tmp_path):
    """If it replaced the recipe's whole section, a warm-up of 500 steps would become the paper's 10,000."""
    plan = planned("pilots: {base: {optimizer: {learning_rate: 1.0e-3}}}", tmp_path / "plan.yaml")
    recipe = find_config("pretrain", "wiki_mini")
    optimizer = PretrainConfig.from_file(recipe, plan.pilots["base"]).optimizer
    assert (optimizer.learning_rate, optimizer.warmup_steps) == (1e-3, 500)
    model = PretrainConfig.from_file(recipe, set_by_key(PretrainConfig, ["model={hidden_size: 64}"])).model
    assert (model.hidden_size, model.num_hidden_layers) == (64, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pilots: {base: 5}", r"pilots.base: needs settings as `key: value`. Received: 5"),
        ("pilots: {base: {training.seed: 7}}", r"pilots.base.training.seed: needs no value, .* study sets it. .*: 7"),
        ("pilots: {base: {training: {seed: 7}}}", "pilots.base.training.seed: needs no value"),
        ("pilots: {base: {}}\nset: {data.files: [a.txt]}", "set.data.files.0: needs no value"),
        ("pilots: {base: {}}\npilots: {}", "line 3 is not valid YAML .'pilots' is given twice"),
    ],
)
def test_what_a_study_would_ignore_is_refused(tmp_path, text, message):
    """A pilot's seed would be replaced by the study's own without a word."""
    with pytest.raises(UserError, match=message):
        planned(text, tmp_path / "plan.yaml")


def test_every_curve_is_in_the_legend_which_fits(monkeypatch):
    """Long names were cut off at both ends of the picture, and those that begin alike had one entry."""
    monkeypatch.setattr(study, "png", lambda figure: figure)
    names = [f"pre_norm_twice_the_rate, seed {seed}" for seed in range(12)]
    figure = curves_picture({"": {name: [(1, 1.0), (2, 2.0)] for name in names}}, "", "")
    figure.draw_without_rendering()
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == names
    extent = legend.get_window_extent()
    assert extent.x0 >= 0 and extent.x1 <= figure.bbox.width


@pytest.mark.parametrize("last", [1000, 30000, 1000000])
def test_labels_of_a_logarithmic_axis_do_not_overlap(last, monkeypatch):
    monkeypatch.setattr(study, "png", lambda figure: figure)
    panels = {title: {"": [(100, 0.0), (last, 1.0)]} for title in "ab"}
    figure = curves_picture(panels, "step", "", is_logarithmic=True)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    least, most = axes.get_xlim()
    shown = [tick.label1.get_window_extent() for tick in axes.xaxis.get_major_ticks() if least < tick.get_loc() < most]
    assert len(shown) >= 3 and all(left.x1 < right.x0 for left, right in zip(shown, shown[1:]))
