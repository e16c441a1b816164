"""What a task's problem is made from: a recipe, or what a model's folder keeps of it."""

import gzip
import json

import numpy as np
import pytest
import safetensors.numpy
from answers import assert_same_answers, predicted_answers
from glue_folder import write_glue
from served import HEADS, write_served
from superglue_folder import write_superglue
from tiny import VOCABULARY
from written import written

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, SINGLE_LABEL, FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.classification.benchmarks import GLUE, SUPERGLUE
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.questions import QUESTION_TASKS
from keras_bert.tasks.few_shot.task import FewShotConfig
from keras_bert.tasks.finetuned_model import FinetunedModel, predict
from keras_bert.tasks.kind import kind_of_task
from keras_bert.tasks.multiple_choice.task import MultipleChoiceConfig
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.question_answering.task import SpanExtractionConfig
from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig
from keras_bert.tasks.span_pairs.task import SPAN_PAIRS, SpanPairConfig
from keras_bert.tasks.tagging.head import TokenClassificationConfig
from keras_bert.tasks.task import INPUT
from keras_bert.text.wordpiece import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer(VOCABULARY)


def config_of(task="text", **data):
    return FinetuneConfig.from_mapping({"task": task, "name": task, "data": data})


def test_several_labels_may_be_one(tmp_path):
    """It must not be looked for in a training file, which evaluation does not have."""
    head = ClassificationConfig(("seen",), MULTI_LABEL)
    dev = written(tmp_path / "dev.jsonl", '{"text": "w1", "label": ["seen"]}\n{"text": "w2", "label": []}\n')
    problem = open_problem(config_of(test=dev, label="label"), TOKENIZER, head)
    assert problem.task.labels == ("seen",) and problem.head == head
    assert problem.rows("test").extra["labels"].tolist() == [[1.0], [0.0]]


def test_the_folder_keeps_the_columns_and_the_format_of_the_tables(tmp_path):
    train = written(tmp_path / "train.tsv", 'no\t"w1 ""w2"""\nyes\tw3\n')
    data = {"train": train, "dev": train, "label": "stars", "texts": ["review"], "format": "tsv"}
    task_record = open_problem(config_of(**data, columns=["stars", "review"]), TOKENIZER).task_record()
    assert task_record["format"] == "tsv" and task_record["columns"] == ["stars", "review"]
    head = ClassificationConfig(("no", "yes"))
    path = write_served(tmp_path / "model", "single", head, **{**task_record, "max_length": 20})
    assert FinetunedModel(path, {"dev": train}).problem.rows("dev").extra["labels"].tolist() == [0, 1]
    for name, content in (("a.tsv", 'no\t"w1 ""w2"""\n'), ("b.jsonl", '{"review": "w1 \\"w2\\""}\n')):
        [window] = FinetunedModel(path, asked=written(tmp_path / name, content)).problem.windows("input")
        assert window.texts == [['w1 "w2"']]
    # A compressed file's lines are lines too, not cells of the training file's table.
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b'"w1\tw2\n'))
    [window] = FinetunedModel(path, asked=str(tmp_path / "c.txt.gz")).problem.windows("input")
    assert window.texts == [['"w1\tw2']]
    other = written(tmp_path / "dev.jsonl", '{"review": "w1", "stars": "yes"}\n')
    assert FinetunedModel(path, {"dev": other}).problem.rows("dev").extra["labels"].tolist() == [1]


def test_of_very_many_labels_no_table_of_confusions_is_made(tmp_path):
    """With ten thousand labels, the results would be a gigabyte."""
    train = written(tmp_path / "train.csv", "text,label\n" + "".join(f"w1,{n}\n" for n in range(501)))
    problem = open_problem(config_of(train=train, dev=train, label="label"), TOKENIZER)
    assert problem.confusion("dev", np.eye(501)) is None
    words = written(tmp_path / "train.txt", "".join(f"w1 N{n}\n\n" for n in range(501)))
    problem = open_problem(config_of("tokens", train=words, dev=words), TOKENIZER)
    assert problem.confusion("dev", [f"N{n}" for n in range(501)]) is None


PAIRS = {"data.texts": ["a", "b"]}


@pytest.mark.parametrize(
    ("task", "rows", "changes", "received"),
    [
        ("text", ["text,label", "w1,0.5", "w2,.5"], {"data.kind": REGRESSION}, "0.5 for all 2"),
        ("sst2", ["sentence,label", "w1,1", "w2,1"], {}, "'positive' for all 2"),
        ("rerank", ["a,b,label", "w1,w2,1", "w1,w3,1"], PAIRS, "1 for all 2"),
        ("pairs-contrastive", ["a,b,label", "w1,w2,3", "w3,w4,3"], {**PAIRS, "vectors.loss": "cosent"}, "3 for all 2"),
        ("tokens", ["w1 N", "", "w2 N"], {}, "'N' for every word"),
    ],
)
def test_one_answer_for_all_teaches_nothing(tmp_path, task, rows, changes, received):
    """A column with one number or one tag would be trained on, up to perfect scores."""
    train = written(tmp_path / ("train.txt" if task == "tokens" else "train.csv"), "\n".join(rows) + "\n")
    data = {"train": train, "dev": train, **({} if task in ("sst2", "tokens") else {"label": "label"})}
    config = FinetuneConfig.from_mapping({"task": task, "name": task, "data": data}, changes)
    with pytest.raises(UserError, match=f"train.* needs .* to train on. Received: {received}"):
        open_problem(config, TOKENIZER).require_different_answers()


@pytest.mark.parametrize(
    ("kind", "labels", "told"),
    [
        (SINGLE_LABEL, ["yes", "yes", "no", "no"], []),
        (SINGLE_LABEL, ["yes", "yes", "no", "No"], ["2 of 3 (the first: 'No')"]),
        (MULTI_LABEL, ['"a,b"', '"a,b"', "c", "a;b"], ["2 of 4 (the first: 'a;b')"]),
        (REGRESSION, ["1", "2", "3", "4"], []),
    ],
)
def test_labels_with_a_single_example_are_told(kind, labels, told, tmp_path):
    """They come from typing errors, another separator, or a column that is not the labels'."""
    rows = [f"w{number},{label}" for number, label in enumerate(labels)]
    train = written(tmp_path / "train.csv", "\n".join(["text,label", *rows]) + "\n")
    problem = open_problem(config_of(train=train, dev=train, label="label", kind=kind), TOKENIZER)
    problem.require_different_answers()
    assert problem.notes == [f"{train}: labels with one training example or none: {found}" for found in told]


@pytest.mark.parametrize("task", ["sst2", "squad", "ner", "swag"])
def test_ones_own_files_win_over_a_folder_of_the_tasks_name(tmp_path, monkeypatch, task):
    """A relative path means that file, not one of its name in the folder where the task's data usually are."""
    monkeypatch.chdir(tmp_path)
    for folder in ("SST-2", "squad"):
        (tmp_path / folder).mkdir()
        for name in ("dev.tsv", "dev.json"):
            (tmp_path / folder / name).write_text("not this")
    contents = {
        "sst2": ("dev.tsv", "sentence\tlabel\nw1\t1\n"),
        "squad": (
            "dev.json",
            '{"data": [{"paragraphs": [{"context": "w1", "qas": [{"id": "1", "question": "w2", '
            '"answers": [{"text": "w1", "answer_start": 0}]}]}]}]}',
        ),
        "ner": ("dev.txt", "w1 B-X\n"),
        "swag": ("dev.jsonl", '{"question": "w1", "choices": ["w1", "w2"], "label": 0}\n'),
    }
    name, content = contents[task]
    (tmp_path / name).write_text(content)
    heads = {"sst2": ClassificationConfig(("negative", "positive"))}
    if task == "ner":
        from keras_bert.tasks.tagging.head import TokenClassificationConfig

        heads["ner"] = TokenClassificationConfig(("O", "B-X", "I-X"))
    problem = open_problem(config_of(task, dev=name), TOKENIZER, heads.get(task))
    assert problem.splits == ("dev",) and len(problem.rows("dev")) == 1
    assert len(list(problem.windows("dev"))) == 1


@pytest.mark.parametrize(
    ("task", "given", "readers"),
    [
        (
            "sst2",
            {"texts": ["review"]},
            r"--text\): .*text, rerank, ner, tokens, segment, pairs-contrastive, few-shot, seq2seq. Received: sst2",
        ),
        (
            "squad",
            {"label": "2"},
            r"label \(--label\): .* of text, rerank, .*, pairs-contrastive, few-shot, seq2seq. Received: squad",
        ),
        ("ner", {"kind": MULTI_LABEL}, r"kind \(--kind\): needs a task that reads it, of text. Received: ner"),
        ("rerank", {"kind": MULTI_LABEL}, r"kind \(--kind\): needs a task that reads it, of text. Received: rerank"),
        ("segment", {"word": "1"}, "word: .* of ner, tokens"),
        ("swag", {"separator": ";"}, "separator: .* of text"),
        ("wic", {"language": "zh"}, "language: .* of xnli"),
        ("pairs-contrastive", {"scoring": "characters"}, "scoring: .* of qa"),
        (
            "few-shot",
            {"kind": MULTI_LABEL},
            r"kind \(--kind\): needs a task that reads it, of text. Received: few-shot",
        ),
        ("text", {"shots": 8}, r"shots \(--shots\): .* of few-shot. Received: text"),
    ],
)
def test_data_that_a_task_does_not_read_is_refused(task, given, readers):
    """It would be ignored, and the task would then miss columns of its own."""
    with pytest.raises(UserError, match=readers):
        open_problem(config_of(task, train="absent", **given), TOKENIZER)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data.folder": "glue"}, "data.folder: needs no files of your own .* Received: 'glue'"),
        (
            {"task": "pairs-contrastive", "data.dev": "absent", "data.folder": "glue"},
            "data.folder: needs no files of your own .* Received: 'glue'",
        ),
        ({"data.separator": ";"}, "data.separator: needs data.kind multi_label_classification, .* Received: ';'"),
        ({"data.dev": "absent", "data.dev_share": 0.2}, "data.dev_share: needs no data.dev .* Received: 0.2"),
        ({"input.stride": 8}, "input.stride: needs texts to classify by input.long=windows, .* Received: 8"),
        ({"task": "ner", "input.long": "windows", "input.stride": 8}, "input.stride: needs .* Received: 8"),
        ({"input.max_question_length": 8}, "input.max_question_length: needs a task of questions .* Received: 8"),
        ({"noise.copies": 3}, "noise.copies: needs noise.kinds .* Received: 3"),
        (
            {"task": "seq2seq", "seq2seq.length_penalty": 2.0},
            "seq2seq.length_penalty: needs seq2seq.beams of 2 or more, .* Received: 2.0",
        ),
        (
            {"task": "seq2seq", "seq2seq.early_stopping": True},
            "seq2seq.early_stopping: needs seq2seq.beams of 2 or more, .* Received: True",
        ),
        ({"features.lstm_size": 256}, "features.lstm_size: needs features.kind .* Received: 256"),
        ({"features.folder": "kept"}, "features.folder: needs features.kind .* Received: 'kept'"),
    ],
)
def test_settings_that_nothing_reads_are_refused(changes, message):
    """Otherwise `a;b` would become a class of its own, and `noise.copies` alone would train without noise."""
    config = FinetuneConfig.from_mapping({"task": "text", "data": {"train": "absent", "label": "label"}}, changes)
    with pytest.raises(UserError, match=message):
        open_problem(config, TOKENIZER)


def test_columns_of_another_task_are_refused_in_evaluation_too(tmp_path):
    path = write_served(tmp_path / "model", "tagging", task="pos")
    with pytest.raises(UserError, match="texts .* Received: pos"):
        FinetunedModel(path, {"texts": ["review"], "dev": "absent"})


@pytest.mark.parametrize("task", ["squad", "tokens", "swag", "wic", "pairs-contrastive", "few-shot"])
@pytest.mark.parametrize("setting", [{"balance_classes": True}, {"class_weights": {"a": 2.0}}])
def test_weights_of_classes_are_for_tasks_with_such_a_loss(task, setting):
    config = FinetuneConfig.from_mapping({"task": task, "name": task, "training": setting})
    with pytest.raises(UserError, match=f"training.{next(iter(setting))}: needs .* Received: {task}"):
        open_problem(config, TOKENIZER)


def test_vectors_have_no_head_that_could_be_trained_alone():
    """The run would train nothing, or a scale on which a frozen encoder's vectors do not depend."""
    config = FinetuneConfig.from_mapping({"task": "pairs-contrastive", "training": {"freeze": True}})
    with pytest.raises(UserError, match="training.freeze: needs a task with a head to train. Received: pairs-contr"):
        open_problem(config, TOKENIZER)


def test_the_weight_of_a_number_is_that_of_its_value(tmp_path):
    """YAML's 2 must fit a table whose numbers are written 2.0."""
    train = written(tmp_path / "train.csv", "text,label\nw1,1.0\nw2,2.0\n")
    data = {"train": train, "dev": train, "label": "label"}
    training = {"class_weights": {2: 3.0}}
    config = FinetuneConfig.from_mapping({"task": "text", "name": "text", "data": data, "training": training})
    assert open_problem(config, TOKENIZER).objective.class_weights.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("weights, last", [({1: 2, "1.0": 3}, "'1.0'"), ({"1": 2, 1.0: 2}, "1.0")])
def test_a_label_has_one_weight(tmp_path, weights, last):
    """Otherwise the last of several weights would count."""
    train = written(tmp_path / "train.csv", "text,label\nw1,1\nw2,2\n")
    data = {"train": train, "dev": train, "label": "label"}
    config = FinetuneConfig.from_mapping({"task": "text", "data": data, "training": {"class_weights": weights}})
    problem = open_problem(config, TOKENIZER)
    with pytest.raises(UserError, match=f"class_weights: needs one weight for .* Received: .*1.* and {last}, both for"):
        _ = problem.objective


def test_weights_that_are_all_zero_are_refused(tmp_path):
    """The loss would be 0 throughout, and nothing would be trained."""
    train = written(tmp_path / "train.csv", "text,label\nw1,no\nw2,yes\n")
    data = {"train": train, "dev": train, "label": "label"}
    training = {"class_weights": {"no": 0, "yes": 0}}
    config = FinetuneConfig.from_mapping({"task": "text", "name": "text", "data": data, "training": training})
    problem = open_problem(config, TOKENIZER)
    with pytest.raises(UserError, match="class_weights: needs a weight above 0 for some label. Received: 0 for all"):
        _ = problem.objective


def test_a_trained_model_answers_without_the_training_file_that_balanced_its_classes(tmp_path):
    """Training weights matter only to the loss; `predict --input` has only the file to answer."""
    path = written(tmp_path / "own.csv", "text\nw1\n")
    config = FinetuneConfig.from_mapping(
        {
            "task": "text",
            "name": "text",
            "data": {"train": "absent", "label": "label"},
            "training": {"balance_classes": True},
        }
    )
    problem = open_problem(config, TOKENIZER, ClassificationConfig(("no", "yes")), asked=path)
    assert problem.objective.class_weights is None and [w.texts for w in problem.windows("input")] == [[["w1"]]]


def test_the_best_of_several_seeds_is_evaluated_on_the_data_of_its_run(tmp_path):
    """The folder of seeds has no recipe of its own, and the training file that balanced its classes may be gone."""
    dev = written(tmp_path / "dev.jsonl", '{"text": "cat", "stars": "no"}\n{"text": "sat", "stars": "yes"}\n')
    write_served(tmp_path / "run" / "model", "single", task="text", label="stars", max_length=20)
    written(tmp_path / "run" / "results.json", '{"best_seed": 2}')
    (tmp_path / "run" / "seed-2").mkdir()
    written(
        tmp_path / "run" / "seed-2" / "config.yaml",
        f"task: text\ndata: {{train: absent, dev: {dev}, label: stars}}\ntraining: {{balance_classes: true}}\n",
    )
    model = FinetunedModel(str(tmp_path / "run"))
    assert model.problem.splits == ("train", "dev") and model.evaluate("dev")["accuracy"] in (0.0, 0.5, 1.0)


OTHERS = {
    "single": ("a.jsonl", '{"text": "the cat sat", "label": "yes"}\n{"text": "a mat", "label": "no"}\n', {}),
    "pair": ("a.jsonl", '{"p": "the cat", "q": "sat", "label": "yes"}\n', {"texts": ["p", "q"]}),
    "multi": ("a.jsonl", '{"text": "the cat", "label": ["a", "b"]}\n', {}),
    "regression": ("a.jsonl", '{"text": "the cat", "label": 1.5}\n{"text": "sat", "label": 0}\n', {}),
    "tagging": ("a.txt", "the O\ncat B-X\n\nsat O\n", {}),
    "choice": ("a.jsonl", '{"question": "the", "choices": ["cat", "sat"], "label": 1}\n', {}),
    "answering": (
        "a.json",
        '{"data": [{"paragraphs": [{"context": "the cat sat", "qas": [{"id": "1", "question": "who", '
        '"answers": [{"text": "cat", "answer_start": 4}]}]}]}]}',
        {},
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_models_of_others_answer_as_they_are_scored(tmp_path, kind):
    """Their config.json says what they answer, but not on which task they were fine-tuned."""
    name, content, data = OTHERS[kind]
    path, file = write_served(tmp_path / "model", kind), written(tmp_path / name, content)
    if kind == "pair":  # Like a folder of transformers, which does not say that it takes pairs.
        path = write_served(tmp_path / "other", "single", HEADS["pair"])
    model, asked = FinetunedModel(path, {**data, "dev": file}), FinetunedModel(path, data, asked=file)
    assert all(np.isfinite(value) for value in model.evaluate("dev").values())
    assert_same_answers(model.problem, predicted_answers(asked, "input"), model.evaluate.answers("dev")[0])


def test_labels_without_names_are_told_and_read_by_their_numbers(tmp_path, caplog):
    head = ClassificationConfig(("LABEL_0", "LABEL_1"))
    dev = written(tmp_path / "dev.csv", "text,label\nthe cat,1\nsat,LABEL_0\n")
    model = FinetunedModel(write_served(tmp_path / "model", "single", head), {"dev": dev})
    assert model.problem.rows("dev").extra["labels"].tolist() == [1, 0]
    assert "its config.json has no names for the labels LABEL_0 to LABEL_1 (id2label)" in caplog.text


def test_words_may_have_the_numbers_of_labels_without_names(tmp_path):
    """Numbers would be refused as unknown labels, though the log says how the model's labels are called."""
    dev = written(tmp_path / "dev.jsonl", '{"text": ["w1", "w2", "w3"], "label": [1, "LABEL_0", 0]}\n')
    recipe = config_of("tokens", dev=dev, word="text", label="label")
    problem = open_problem(recipe, TOKENIZER, TokenClassificationConfig(("LABEL_0", "LABEL_1")))
    assert problem.evaluate("dev", ["LABEL_1", "LABEL_1", "LABEL_0"])["accuracy"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "task, head, example, answer",
    [
        ("qa", SpanExtractionConfig(), {"id": "1", "question": "w1", "context": "w2"}, {"answers": {"text": ["w2"]}}),
        ("choice", MultipleChoiceConfig(), {"context": "w1", "choices": ["w2", "w3"]}, {"label": 1}),
        ("tokens", TokenClassificationConfig(("x", "y")), {"text": ["w1", "w2"]}, {"label": ["x", "y"]}),
    ],
)
def test_examples_to_answer_need_no_answers_even_if_the_first_has_one(tmp_path, task, head, example, answer):
    """Whether all are answered or refused must not depend on the order of the rows."""
    rows = [{**example, **answer}, {**example, "id": "2"}]
    asked = written(tmp_path / "asked.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    recipe = config_of(task, **({"texts": ["text"], "word": "text", "label": "label"} if task == "tokens" else {}))
    problem = open_problem(recipe, TOKENIZER, head, {}, asked)
    assert [len(window) for window in problem.windows(INPUT)] == [2]


def test_a_task_for_another_head_is_refused(tmp_path):
    """Otherwise it would end in an AttributeError, after the model was loaded."""
    path = write_served(tmp_path / "model", "tagging", task="tokens")
    with pytest.raises(UserError, match="task: needs one for a BertForTokenClassification. Received: sst2"):
        FinetunedModel(path, {"folder": "absent"}, "sst2")


@pytest.mark.parametrize("head", [SentenceVectorsConfig(("score",)), SpanPairConfig(("no", "yes"))])
def test_a_model_of_other_rows_is_refused_for_texts(head):
    """Their heads extend that of texts: the error would be Keras' own, once a batch was answered."""
    with pytest.raises(UserError, match=f"task: needs one for a {head.architecture}. Received: mrpc"):
        open_problem(config_of("mrpc"), TOKENIZER, head)
    assert kind_of_task("mrpc").has_tasks_for(FewShotConfig(("no", "yes"))), "whose rows are those of texts"


def with_labels_backwards(folder):
    """Reverses the labels of a classifier, and its outputs with them."""
    config = json.loads((folder / "config.json").read_text())
    labels = list(config["id2label"].values())[::-1]
    config |= {"id2label": dict(enumerate(labels)), "label2id": {label: id for id, label in enumerate(labels)}}
    (folder / "config.json").write_text(json.dumps(config))
    file = str(folder / "model.safetensors")
    weights = safetensors.numpy.load_file(file)
    of_classifier = {name for name in weights if name.endswith(("classifier.weight", "classifier.bias"))}
    assert len(of_classifier) == 2
    safetensors.numpy.save_file(
        {
            name: np.ascontiguousarray(weight[::-1]) if name in of_classifier else weight
            for name, weight in weights.items()
        },
        file,
    )


@pytest.mark.parametrize("task", ["cola", "mrpc", "multirc", "record", "wic"])
def test_the_order_of_a_models_labels_changes_no_score_or_submission(tmp_path, task):
    """The files' 1 must not be taken for the label at place 1, nor that place be submitted."""
    data = str((write_glue if task in GLUE else write_superglue)(tmp_path / "data"))
    labels = {**GLUE, **SUPERGLUE, **QUESTION_TASKS, **SPAN_PAIRS}[task].labels
    head = (SpanPairConfig if task in SPAN_PAIRS else ClassificationConfig)(labels)
    found = []
    for name in ("in-order", "backwards"):
        path = write_served(tmp_path / name, "single", head, task=task, max_length=40)
        if name == "backwards":
            with_labels_backwards(tmp_path / name)
        model = FinetunedModel(path, {"folder": data})
        predict(model, ["test"], str(tmp_path / f"{name}-answers"))
        [file] = (tmp_path / f"{name}-answers").iterdir()
        found.append((file.read_text(), model.evaluate("dev"), model.problem.baseline("dev")))
    assert found[0][0] == found[1][0] and found[0][1] == pytest.approx(found[1][1], abs=1e-5)
    assert found[0][2] == found[1][2]
