"""XNLI's files: one language to train in, and a split to evaluate on for each language."""

import pytest
from finetuning import VOCABULARY
from whole_splits import load_examples

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.classification.benchmarks import LANGUAGES, xnli_task
from keras_bert.tasks.finetuning.results import evaluation_lines
from keras_bert.tasks.problem import open_problem
from keras_bert.text.wordpiece import WordPieceTokenizer

COLUMNS = ["language", "gold_label", "sentence1_binary_parse", "sentence1", "sentence2", "pairID"]


@pytest.fixture
def folder(tmp_path):
    """The two releases side by side, as they are unpacked."""
    own, translated = tmp_path / "XNLI-1.0", tmp_path / "XNLI-MT-1.0" / "multinli"
    own.mkdir()
    translated.mkdir(parents=True)
    rows = [
        ["en", "neutral", "", 'w1 "w2', "w3", "1"],
        ["zh", "neutral", "", "w4", "w5", "1"],
        ["zh", "contradiction", "", "w6", "w7", "2"],
        ["ur", "entailment", "", "w8", "w9", "3"],
    ]
    for split in ("dev", "test"):
        lines = ["\t".join(row) for row in (COLUMNS, *rows)]
        (own / f"xnli.{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for language, label in (("en", "contradictory"), ("zh", "entailment")):
        text = f"premise\thypo\tlabel\nw1 w2\tw3\t{label}\nw4\tw5\tneutral\n"
        (translated / f"multinli.train.{language}.tsv").write_text(text, encoding="utf-8")
    return str(tmp_path)


def test_each_language_has_its_own_rows(folder):
    task = xnli_task("zh")
    dev_splits = [split for split in task.splits if split.startswith("dev")]
    assert dev_splits[0] == "dev_zh" and len(dev_splits) == len(LANGUAGES) == 15
    chinese = load_examples(task, "dev_zh", folder)
    assert chinese.texts == [["w4", "w6"], ["w5", "w7"]] and chinese.labels.tolist() == [1, 2]
    assert load_examples(task, "test_en", folder).texts == [['w1 "w2'], ["w3"]]
    assert load_examples(task, "train", folder).labels.tolist() == [0, 1]
    assert load_examples(xnli_task("en"), "train", folder).labels.tolist() == [2, 1]
    with pytest.raises(UserError, match="data.language: needs one of ar, bg"):
        xnli_task("it")


def test_scores_stand_beside_those_of_the_same_language(folder):
    values = {"task": "xnli", "data": {"folder": folder, "language": "zh"}, "input": {"max_length": 16}}
    problem = open_problem(FinetuneConfig.from_mapping(values), WordPieceTokenizer(VOCABULARY))
    assert problem.task_record()["language"] == "zh" and len(problem.rows("dev_ur")) == 1
    lines = list(evaluation_lines({"dev_ur": {"as it is": {"accuracy": 0.5}}}, problem))
    assert [line.split()[-1] for line in lines] == ["accuracy", "50.00", "61.6", "58.3"]
    assert "zero-shot" in lines[-1] and lines[-1].startswith("test_ur")
