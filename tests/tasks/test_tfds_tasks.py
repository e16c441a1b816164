"""GLUE from TensorFlow Datasets, in folders that TFDS itself writes here."""

import numpy as np
import pytest
import tensorflow_datasets as tfds
from glue_folder import write_glue
from tfds_folder import prepare
from tiny import VOCABULARY
from whole_splits import load_examples

from keras_bert.config.finetuning import FinetuneConfig, TaskDataConfig
from keras_bert.config.recipes import config_names, find_config
from keras_bert.core.errors import UserError
from keras_bert.data.tables import tfds as tfds_tables
from keras_bert.tasks.classification.benchmarks import GLUE
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.sources import TfdsSource
from keras_bert.text.wordpiece import WordPieceTokenizer


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """TFDS's own folder with RTE; TFDS's code says that entailment is 0."""
    folder = tmp_path_factory.mktemp("tfds")
    rte = [((f"Premise {n}", f"Hypothesis {n}"), n % 3 > 0) for n in range(40)]
    rows = {"train": rte, "validation": rte[:9], "test": [(texts, -1) for texts, _ in rte[:5]]}
    prepare(folder, "rte", rows, labels=["entailment", "not_entailment"])
    return str(folder)


def test_in_the_order_of_the_files(data_dir):
    examples = load_examples(GLUE["rte"], "train", TfdsSource(data_dir))
    assert examples.texts[1] == [f"Hypothesis {n}" for n in range(40)]
    assert examples.indices.tolist() == list(range(40)) and examples.indices.dtype == np.int64
    assert examples.labels.tolist() == [n % 3 > 0 for n in range(40)]
    assert len(load_examples(GLUE["rte"], "dev", TfdsSource(data_dir))) == 9


def test_the_names_of_the_classes_tell_which_is_which(tmp_path):
    rows = {"train": [(("a", "b"), 0), (("c", "d"), 1)]}
    path = prepare(tmp_path, "rte", rows, labels=["not_entailment", "entailment"])
    assert load_examples(GLUE["rte"], "train", TfdsSource(path)).labels.tolist() == [1, 0]


def test_hidden_labels_are_none_and_refused_for_evaluation(data_dir):
    assert load_examples(GLUE["rte"], "test", TfdsSource(data_dir)).labels is None
    config = FinetuneConfig("rte", data=TaskDataConfig(data_dir))
    with pytest.raises(UserError, match="needs labels to evaluate on"):
        open_problem(config, WordPieceTokenizer(VOCABULARY)).require_labels("test")


def test_both_sources_give_the_same(tmp_path):
    folder = write_glue(tmp_path / "glue")
    for name, split in (("mnli", "dev_mismatched"), ("stsb", "train"), ("mrpc", "dev")):
        task = GLUE[name]
        ours = load_examples(task, split, str(folder))
        rows = list(zip(zip(*ours.texts), ours.labels.tolist()))
        path = prepare(tmp_path / "tfds", name, {task.splits[split].tfds: rows}, labels=task.labels)
        theirs = load_examples(task, split, TfdsSource(path))
        assert theirs.texts == ours.texts and theirs.labels.tolist() == ours.labels.tolist()
        assert theirs.labels.dtype == ours.labels.dtype


def test_what_tfds_does_not_have_is_named(data_dir, tmp_path):
    other = prepare(tmp_path / "other", "rte", {"train": [(("a", "b"), 0)]}, labels=["yes", "no"])
    hidden = prepare(tmp_path / "hidden", "rte", {"train": [(("a", "b"), -1)]}, labels=list(GLUE["rte"].labels))
    scores = prepare(tmp_path / "scores", "mnli", {"train": [(("a", "b"), 1.0)]})
    for name, source, told in (
        ("sst2", TfdsSource(str(tmp_path / "empty")), "glue/sst2: needs a data set prepared in"),
        ("stsb", TfdsSource(scores), "needs a feature 'sentence1'. Received: "),
        ("rte", TfdsSource(other), "needs the labels entailment, not_entailment. Received: yes, no"),
        ("rte", TfdsSource(hidden), "example 0: needs a label. Received: None"),
    ):
        with pytest.raises(UserError, match=told) as error:
            load_examples(GLUE[name], "train", source)
        assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="needs a split 'validation'. Received: train"):
        load_examples(GLUE["rte"], "dev", TfdsSource(hidden))


@pytest.mark.parametrize("name", config_names("finetune"))
def test_a_recipes_command_without_data_has_them_in_tfds(name, tmp_path, monkeypatch):
    """Otherwise a recipe's command would ask TFDS for data it has never had, or name no files to give."""
    path, asked, told = find_config("finetune", name), set(), []

    def opened(name, *_):
        data_set, _, config = name.partition("/")
        return tfds.builder_cls(data_set)(config=config or None, data_dir=str(tmp_path))

    def examples(table, split, wanted, index=None):
        assert {feature.partition("/")[0] for feature in wanted} <= set(table._builder.info.features)
        asked.add(split)
        return []

    monkeypatch.setattr(tfds_tables, "open_builder", opened)
    monkeypatch.setattr(tfds_tables.TfdsTable, "examples", examples)
    try:
        problem = open_problem(FinetuneConfig.from_file(path), WordPieceTokenizer(VOCABULARY))
        for split in problem.splits:
            with pytest.raises(UserError) as error:
                problem.rows(split)
            told.append(str(error.value))
    except UserError as error:
        told.append(str(error))
    with open(path, encoding="utf-8") as stream:
        command = next(line for line in stream if line.startswith("# Command:"))
    if "--data-dir" in command or "--train" in command:
        assert not asked and all("--train" in line and "\n" not in line for line in told), told
    else:
        assert any(split.startswith("train") for split in asked), told


def test_what_a_task_without_a_data_set_reads_is_named():
    """Otherwise `--task swag` would only say that it needs files."""
    for name, files in (
        ("swag", r"train\.csv, val\.csv, test\.csv"),
        ("ner", r"eng\.train, eng\.testa, eng\.testb"),
        ("cmrc", r"cmrc2018_train\.json, cmrc2018_dev\.json, cmrc2018_trial\.json"),
        ("xnli", r"multinli\.train\.en\.tsv, xnli\.dev\.tsv, xnli\.test\.tsv"),
    ):
        with pytest.raises(UserError, match=rf"{name}: needs its files \({files}\). Received: none. Give --data-dir"):
            open_problem(FinetuneConfig(name), WordPieceTokenizer(VOCABULARY)).rows("train")
