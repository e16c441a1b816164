"""Embryology: what is read from snapshots, and its table."""

import json
import re
import subprocess

import numpy as np
import pytest
from click.testing import CliRunner
from corpus import write_corpus
from finetuning import write_sst2
from pretraining import recipe

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli import main
from keras_bert.config.studies import EmbryologyPlan, TaggedText
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.studies.embryology import agreement, overall, table, tag_table
from keras_bert.studies.probes import TaggedPieces, probe
from keras_bert.studies.snapshots import Snapshots
from keras_bert.studies.study import crossing
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.training.run_folder import RunFolder

WORDS = {
    100: {"reconstructed": {"DET": [5, 10], "NOUN": [0, 30]}, "filled_in": {"DET": [1, 10], "NOUN": [0, 10]}},
    200: {"reconstructed": {"DET": [10, 10], "NOUN": [30, 30]}, "filled_in": {"DET": [4, 10], "NOUN": [0, 10]}},
}


def test_the_table_of_the_parts_of_speech():
    """Half of the determiners are there at 100, half of the nouns midway between the snapshots."""
    lines = list(tag_table(WORDS, {"NOUN": 14000, "DET": 1000, "INTJ": 5}))
    assert lines[2:] == [
        "| DET | 10 | 100 | 100.0 | 133 | 40.0 | 1,000 |",
        "| NOUN | 30 | 150 | 100.0 | – | 0.0 | 14,000 |",
    ]
    assert agreement(WORDS, {"NOUN": 14000, "DET": 1000, "INTJ": 5}) == (pytest.approx(1.0), 2)
    assert agreement(WORDS, {"NOUN": 1, "DET": 2})[0] == pytest.approx(-1.0)
    assert crossing([(100, 20.0), (200, 40.0)], 50.0) is None


def test_overall_scores_weigh_parts_of_speech_as_the_text_does():
    """As many nouns as determiners were masked, but the text has three times as many nouns."""
    assert overall({"DET": [4, 10], "NOUN": [0, 10]}, WORDS[200]["reconstructed"]) == 10.0
    found = {"words": WORDS, "probes": {100: {"pos": [50.0, 60.0]}, 200: {"pos": [55.0, 50.0]}}}
    assert list(table([100, 200], {100: None, 200: 1.5}, found))[2:] == [
        "| 100 | – | 12.5 | 2.5 | 60.0 (1) |",
        "| 200 | 1.500 | 100.0 | 10.0 | 55.0 (0) |",
    ]


def test_a_probe_reads_what_is_linear_and_no_more():
    """Layer 0 is noise, in layer 1 a direction tells the labels apart: chance, and nearly all."""
    random = np.random.default_rng(0)

    def split(count):
        words = np.arange(count)
        tags = [("A", "B", None)[number % 3] for number in words]
        states = random.normal(size=(2, count, 8)).astype("float32")
        states[1, :, 3] += [4.0 if tag == "A" else -4.0 for tag in tags]
        return states, TaggedPieces([np.array([1])] * count, words, words * 0, words * 0 + 1, tags, words >= 0)

    noise, clear = probe(split(600), split(600), marks_entities=False)
    assert 40.0 < noise < 60.0 and clear > 99.0


def test_a_probe_of_entities_is_scored_by_whole_entities():
    tags = ["B-PER", "I-PER", "O", "O"] * 50
    words = np.arange(len(tags))
    states = np.stack([np.eye(4, dtype="float32")[words % 4]])
    pieces = TaggedPieces([np.array([1] * 4)] * 50, words // 4, words % 4, words * 0 + 1, tags, words >= 0)
    assert probe((states, pieces), (states, pieces), marks_entities=True) == [100.0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of 12 steps, with snapshots at 4, 8 and 12."""
    folder = tmp_path_factory.mktemp("embryo")
    config = recipe(write_corpus(folder / "text.txt"), **{"training.keep_every": 4, "training.keep_checkpoints": 1})
    pretrain(config, RunFolder(str(folder / "run")))
    return folder / "run"


def test_snapshots_are_the_models_of_their_steps(run, tmp_path):
    """The last is the model that the run exported; the others differ from it and from each other."""
    snapshots = Snapshots(str(run))
    assert {4, 8, 12} <= set(snapshots.steps)
    exported = load(str(run)).model.get_weights()
    values = {}
    for step in (4, 12):
        with snapshots.restored(step) as model:
            values[step] = [np.array(value) for value in model.get_weights()]
    assert all(np.array_equal(*pair) for pair in zip(values[12], exported))
    assert not all(np.array_equal(*pair) for pair in zip(values[4], exported))
    snapshots.write(4, str(tmp_path / "model"))
    written = load(str(tmp_path / "model")).model.get_weights()
    assert all(np.array_equal(*pair) for pair in zip(written, values[4]))
    assert open_model_folder(str(tmp_path / "model")).lower_case


def write_treebank(folder):
    folder.mkdir(parents=True)
    for split in ("train", "dev"):
        lines = []
        for _ in range(8):
            words = [("the", "DET"), ("city", "NOUN"), ("was", "AUX"), ("old", "ADJ")]
            lines += ["\t".join([str(n), form, "_", tag, *"______"]) for n, (form, tag) in enumerate(words, 1)] + [""]
        (folder / f"x-ud-{split}.conllu").write_text("\n".join(lines) + "\n")


def test_the_study_from_the_command_line_and_once_more(run, tmp_path, monkeypatch):
    """The second start measures nothing; parts made with another number of words are refused."""
    write_treebank(tmp_path / "data" / "bank")
    plan = {"treebank": {"task": "pos", "folder": "bank"}, "probes": {"pos": {"task": "pos", "folder": "bank"}}}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    line = ["study", "embryology", run, "--plan", tmp_path / "plan.yaml", "--data", tmp_path / "data"]
    line = [str(word) for word in [*line, "--output", tmp_path / "out"]]
    first = CliRunner().invoke(main, line)
    assert first.exit_code == 0, first.output
    monkeypatch.setattr(Snapshots, "restored", None)
    again = CliRunner().invoke(main, line)
    assert again.exit_code == 0 and again.output == first.output
    page = (tmp_path / "out" / "embryology.md").read_text()
    assert "| 4 | " in page and "| 12 | " in page and "| DET | 8 | " in page
    assert page.count("![") == 3
    (tmp_path / "plan.yaml").write_text(json.dumps({**plan, "words_per_tag": 3}))
    other = CliRunner().invoke(main, line)
    assert other.exit_code == 2 and "words_per_tag: 300 there, 3 now" in other.output


def test_what_is_no_pretraining_run_with_snapshots_is_refused(run, tmp_path):
    with pytest.raises(UserError, match="needs the folder of a pretraining run. Received: one without config.yaml"):
        Snapshots(str(tmp_path))
    (tmp_path / "config.yaml").write_text("task: sst2\n")
    with pytest.raises(UserError, match="needs a pretraining run. Received: one that fine-tuned on sst2"):
        Snapshots(str(tmp_path))
    (tmp_path / "config.yaml").write_text("objective: {tokens: next, pair: none}\nmodel: {attention: causal}\n")
    with pytest.raises(UserError, match="needs a run that trained a masked LM. Received: objective.tokens: next"):
        Snapshots(str(tmp_path))
    (tmp_path / "config.yaml").write_text("name: unfinished\n")
    with pytest.raises(UserError, match="needs a finished run"):
        Snapshots(str(tmp_path))
    for name in ("config.yaml", "results.json"):
        (tmp_path / name).write_text((run / name).read_text())
    (tmp_path / "model").symlink_to(run / "model")
    with pytest.raises(UserError, match=r"needs snapshots of the run. Received: 0. Train with training.keep_every=N"):
        Snapshots(str(tmp_path))


def test_a_plan_names_what_it_reads():
    with pytest.raises(ValueError, match="task: needs one of pos, ner. Received: 'squad'"):
        TaggedText("squad", "squad")
    with pytest.raises(ValueError, match="words_per_tag: needs a value above 0"):
        EmbryologyPlan(TaggedText("pos", "bank"), words_per_tag=0)


@pytest.mark.slow
def test_fine_tuning_from_snapshots_keeps_the_figures_alone(run, tmp_path, monkeypatch):
    """Models would fill a disk; a second start neither writes a snapshot nor trains; more seeds train those alone."""
    write_sst2(tmp_path / "data" / "glue", train=48, dev=16)
    changes = {"training.steps": 2, "training.batch_size": 8, "training.jit_compile": False, "input.max_length": 24}
    task = {"folder": "glue", "task": "sst2", "set": changes, "rates": [1e-2]}
    plan = {"treebank": {"task": "pos", "folder": "bank"}, "tasks": {"reviews": task}}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    line = ["study", "embryology", run, "--plan", tmp_path / "plan.yaml", "--data", tmp_path / "data"]
    line = [str(word) for word in [*line, "--output", tmp_path / "out", "--only", "tasks", "--tasks-from", "2"]]
    line += ["--seeds", "1"]
    first = CliRunner().invoke(main, line)
    assert first.exit_code == 0, first.output
    page = (tmp_path / "out" / "embryology.md").read_text()
    assert "| step | nats below the unigram | reviews, accuracy |" in page
    rows = dict(re.findall(r"^\| (\d+) \|.* \| (.+) \|$", page, re.MULTILINE))
    assert list(rows) == ["4", "8", "12"]
    assert [step for step, score in rows.items() if score == "–"] == ["8"]
    kept = [str(path) for path in (tmp_path / "out").rglob("*")]
    assert not any("snapshots" in path or path.endswith((".safetensors", "checkpoints")) for path in kept)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("Trained again."))
        patch.setattr(Snapshots, "write", None)
        again = CliRunner().invoke(main, line)
    assert again.exit_code == 0 and again.output == first.output
    more = CliRunner().invoke(main, [*line[:-1], "2"])
    assert more.exit_code == 0, more.output
    results = json.loads((tmp_path / "out" / "reviews" / "step-12" / "rate-0.01" / "results.json").read_text())
    assert results["seeds"] == [1, 2]
