"""Embryology: which words a masked LM gets right, what is read from snapshots, and the table."""

import dataclasses
import json
import re
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from command_line import give
from corpus import write_corpus
from finetuning import VOCABULARY as PLAIN
from finetuning import write_sst2
from pretraining import recipe

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.config.studies import EmbryologyPlan, TaggedText
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.studies.embryology import WordPredictions, agreement, by_tag, overall, sampled, table, tag_table
from keras_bert.studies.probes import TaggedPieces, probe, tagged_pieces
from keras_bert.studies.snapshots import Snapshots
from keras_bert.studies.study import crossing
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.tasks.tagging.word_files import ConlluReader
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer
from keras_bert.training.run_folder import RunFolder

WORDS = {
    100: {"reconstructed": {"DET": [5, 10], "NOUN": [0, 30]}, "filled_in": {"DET": [1, 10], "NOUN": [0, 10]}},
    200: {"reconstructed": {"DET": [10, 10], "NOUN": [30, 30]}, "filled_in": {"DET": [4, 10], "NOUN": [0, 10]}},
}


def test_the_table_of_the_parts_of_speech():
    """Half of the determiners are right at step 100, half of the nouns midway between the snapshots."""
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
    """Layer 0 is noise, which gives chance; in layer 1 one direction separates the labels, which gives nearly 100."""
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
    others = dataclasses.replace(pieces, tags=["X", "X", "O", "O"] * 50)
    with pytest.raises(UserError, match="Received: 'X'.$"):  # And not the tag at that answer's place.
        probe((states, others), (states, pieces), marks_entities=True)
    alone = dataclasses.replace(pieces, tags=["O"] * len(tags))
    with pytest.raises(UserError, match="probe_words: needs words of two labels, .* Received: O alone. Raise it."):
        probe((states, alone), (states, pieces), marks_entities=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of 12 steps, with snapshots at 4, 8 and 12."""
    folder = tmp_path_factory.mktemp("embryo")
    config = recipe(write_corpus(folder / "text.txt"), **{"training.keep_every": 4, "training.keep_checkpoints": 1})
    pretrain(config, RunFolder(str(folder / "run")))
    return folder / "run"


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_study_from_the_command_line_and_once_more(run, tmp_path, monkeypatch):
    """The second start measures nothing; parts made with another number of words are refused."""
    write_treebank(tmp_path / "data" / "bank")
    plan = {"treebank": {"task": "pos", "folder": "bank"}, "probes": {"pos": {"task": "pos", "folder": "bank"}}}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    line = ["study", "embryology", run, "--plan", tmp_path / "plan.yaml", "--data", tmp_path / "data"]
    line = [str(word) for word in [*line, "--output", tmp_path / "out"]]
    first = give(*line)
    monkeypatch.setattr(Snapshots, "restored", None)
    again = give(*line)
    assert again.output == first.output
    page = (tmp_path / "out" / "embryology.md").read_text()
    assert "| 4 | " in page and "| 12 | " in page and "| DET | 8 | " in page
    assert page.count("![") == 3
    (tmp_path / "plan.yaml").write_text(json.dumps({**plan, "words_per_tag": 3}))
    other = give(*line, status=2)
    assert "words_per_tag: was 300, now 3" in other.output


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
    """Models would fill a disk. A second start neither writes a snapshot nor trains; more seeds train only those."""
    write_sst2(tmp_path / "data" / "glue", train=48, dev=16)
    changes = {"training.steps": 2, "training.batch_size": 8, "training.jit_compile": False, "input.max_length": 24}
    task = {"folder": "glue", "task": "sst2", "set": changes, "rates": [1e-2]}
    plan = {"treebank": {"task": "pos", "folder": "bank"}, "tasks": {"reviews": task}}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    line = ["study", "embryology", run, "--plan", tmp_path / "plan.yaml", "--data", tmp_path / "data"]
    line = [str(word) for word in [*line, "--output", tmp_path / "out", "--only", "tasks", "--tasks-from", "2"]]
    line += ["--seeds", "1"]
    monkeypatch.setattr("keras_bert.core.terminal_bar._SECONDS_A_LINE", 1e6)  # A slow machine would print the time.
    first = give(*line)
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
        again = give(*line)
    assert again.output == first.output
    give(*line[:-1], "2")
    results = json.loads((tmp_path / "out" / "reviews" / "step-12" / "rate-0.01" / "results.json").read_text())
    assert results["seeds"] == [1, 2]


VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "the", "a", "cat", "##s", "sat", "##down", "on", "never"])
SENTENCES = [
    [("the", "DET"), ("cats", "NOUN"), ("sat", "VERB"), ("on", "ADP"), ("a", "DET"), ("cat", "NOUN")],
    [("a", "DET"), ("cats", "NOUN"), ("zebra", "NOUN"), ("satdown", "VERB")],
]


def treebank(path, sentences=SENTENCES):
    lines = []
    for words in sentences:
        lines += ["\t".join([str(n), form, "_", tag, *"______"]) for n, (form, tag) in enumerate(words, 1)] + [""]
    path.write_text("\n".join(lines) + "\n")
    return ConlluReader(str(path)).whole()


def pieces_of(path, max_length=32):
    return tagged_pieces(WordPieceTokenizer(VOCABULARY), treebank(path), max_length)


def id_of(*names):
    return [VOCABULARY.tokens.index(name) for name in names]


class KnowsNouns:
    """Returns the pieces of nouns; predicts `cat ##s` for two [MASK]s, `cat` for one, and `never` for the rest."""

    def __call__(self, inputs):
        ids = inputs["input_word_ids"]
        cat, s, other = (tf.constant(number, tf.int32) for number in id_of("cat", "##s", "never"))
        mask = VOCABULARY.mask_id
        after_mask = tf.pad(ids[:, :-1], [[0, 0], [1, 0]]) == mask
        guess = tf.where(ids == mask, tf.where(after_mask, s, cat), other)
        guess = tf.where((ids == cat) | (ids == s), ids, guess)
        logits = tf.one_hot(guess, len(VOCABULARY))
        return {"mlm_logits": tf.gather(logits, inputs["masked_lm_positions"], batch_dims=1)}


def test_a_model_that_knows_one_part_of_speech_scores_100_there_and_0_elsewhere(tmp_path):
    """With words of one piece and of two, seen and masked."""
    pieces = pieces_of(tmp_path / "dev.conllu")
    predictions = WordPredictions(KnowsNouns(), VOCABULARY, pieces)
    known = np.flatnonzero(pieces.is_known)
    seen = by_tag(pieces, known, predictions.reconstructed()[known])
    assert seen == {"NOUN": [3, 3], "DET": [0, 3], "VERB": [0, 2], "ADP": [0, 1]}
    masked = sampled(pieces, per_tag=10)
    assert sorted(masked) == list(known)
    assert by_tag(pieces, masked, predictions.filled_in(masked)) == {
        "NOUN": [3, 3], "DET": [0, 3], "VERB": [0, 2], "ADP": [0, 1]
    }  # fmt: skip


def test_a_word_counts_only_if_all_its_pieces_are_right(tmp_path):
    """`satdown` and `cats` have two pieces; a model that always says `##down` gets at most half of each."""

    def says_down(inputs):
        (down,) = id_of("##down")
        return {"mlm_logits": tf.one_hot(tf.fill(tf.shape(inputs["masked_lm_positions"]), down), len(VOCABULARY))}

    pieces = pieces_of(tmp_path / "dev.conllu")
    predictions = WordPredictions(says_down, VOCABULARY, pieces)
    assert not predictions.reconstructed().any()
    assert not predictions.filled_in(sampled(pieces, 10)).any()


def test_rows_hold_whole_words_and_words_with_unknown_pieces_do_not_count(tmp_path):
    """A sentence too long for a row continues in the next; `zebra` has no pieces in the vocabulary."""
    pieces = pieces_of(tmp_path / "dev.conllu", max_length=6)
    assert [len(row) for row in pieces.rows] == [4, 3, 4, 2]
    assert pieces.row.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert pieces.start.tolist() == [0, 1, 3, 0, 1, 2, 0, 1, 3, 0]
    assert pieces.is_known.tolist() == [True] * 8 + [False, True]
    assert pieces.all_tags() == ["NOUN", "DET", "VERB", "ADP"]


def test_the_sample_takes_evenly_from_each_tag(tmp_path):
    """The beginning of the treebank alone would give words from one kind of text."""
    pieces = tagged_pieces(
        WordPieceTokenizer(PLAIN), treebank(tmp_path / "long.conllu", [[("good", "ADJ"), ("w1", "NOUN")]] * 100), 32
    )
    chosen = sampled(pieces, per_tag=5)
    assert [pieces.tags[word] for word in chosen] == ["ADJ"] * 5 + ["NOUN"] * 5
    assert chosen[:5].tolist() == [0, 48, 98, 148, 198]


def test_a_text_without_tags_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"bare\.conllu: needs words with tags\. Received: 2 words without"):
        tagged_pieces(
            WordPieceTokenizer(PLAIN), treebank(tmp_path / "bare.conllu", [[("good", "_"), ("bad", "_")]]), 32
        )
