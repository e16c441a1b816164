"""Multiple choice: SWAG's files, the user's own, TFDS; rows in groups, absent choices, and what is refused."""

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import tensorflow as tf
from tiny import random_weights, without_dropout
from written import written

from keras_bert.config.finetuning import FinetuneConfig, InputConfig
from keras_bert.config.training import OptimizerConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.length_batches import LengthBatches, choose_widths
from keras_bert.tasks.multiple_choice.data import choice_examples, own_rows, swag_rows
from keras_bert.tasks.multiple_choice.problem import MultipleChoiceProblem
from keras_bert.tasks.multiple_choice.task import CHOICE, SWAG
from keras_bert.tasks.sources import find_split_files
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.step import Step, all_outputs
from keras_bert.training.strategy import make_strategy

WORDS = ["she", "opens", "the", "door", "and", "sings", "runs", "he", ".", ","]
TOKENIZER = WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *WORDS]))
HEADER = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"
ROWS = [
    '0,lsmdc,17,"She opens, she sings. He",She opens the door.,He,gold,sings.,"runs, and runs.",opens.,"she, he.",{}',
    "1,anetv,18,He runs. The,He runs.,The,gen,door.,door opens.,door sings.,door runs.,{}",
]


def swag(labels=(1, 3), header=HEADER + ",label"):
    return "\n".join([header, *(row.format(label) for row, label in zip(ROWS, labels))]) + "\n"


def read_swag(path):
    return choice_examples(path, swag_rows(path))


def read_choices(path):
    return choice_examples(path, own_rows(path))


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


OWN = lines(
    {"id": "a", "question": "she sings", "choices": ["he runs", "the door", "and"], "label": 2},
    {"id": "b", "context": "he runs", "question": "she", "choices": ["sings", "opens the door and runs"], "label": 0},
)


def problem_of(task, source, **settings):
    config = FinetuneConfig(task.name, input=InputConfig(**settings))
    return MultipleChoiceProblem(task=task, source=source, tokenizer=TOKENIZER, config=config)


def own_problem(tmp_path, content=OWN, **settings):
    files = {"train": written(tmp_path / "train.jsonl", content), "dev": written(tmp_path / "dev.jsonl", content)}
    return problem_of(CHOICE, files, **settings)


def pieces(row):
    return " ".join(TOKENIZER.vocabulary.tokens[id] for id in row)


def rows_of(rows):
    return [pieces(rows.ids[start:end]) for start, end in zip(rows.starts, rows.starts[1:])]


def test_swags_file(tmp_path):
    """Quoted commas are read, and the context is separated from the words that begin every choice."""
    examples = read_swag(written(tmp_path / "train.csv", swag()))
    assert [row.context for row in examples.examples] == ["She opens the door.", "He runs."]
    assert [row.beginning for row in examples.examples] == ["He", "The"]
    assert examples.examples[0].choices == ["sings.", "runs, and runs.", "opens.", "she, he."]
    assert examples.labels == [1, 3] and len(examples) == 2
    hidden = [row.rpartition(",")[0] for row in swag().splitlines()]
    assert read_swag(written(tmp_path / "test.csv", "\n".join(hidden))).labels is None


@pytest.mark.parametrize("task", [SWAG, CHOICE])
def test_swags_table_may_have_another_format(task, tmp_path):
    """The hub has it as Parquet, with numbers as labels and -1 for hidden ones."""
    path, table = str(tmp_path / "train.parquet"), written(tmp_path / "train.csv", swag(labels=(1, -1)))
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(table), path)
    assert [row[2:] for row in task.rows(path)] == [(*row[2:5], int(row.label)) for row in swag_rows(table)]


def test_swags_rows_are_the_papers(tmp_path):
    """Sentence A is the context, sentence B the whole continuation; an example is four rows."""
    files = {"train": written(tmp_path / "train.csv", swag())}
    rows = problem_of(SWAG, files).rows("train")
    assert rows_of(rows)[1] == "[CLS] she opens the door . [SEP] he runs , and runs . [SEP]"
    assert rows.second_starts[1] == 7 and rows.group_starts.tolist() == [0, 4, 8] and len(rows) == 2
    assert rows.extra["labels"].tolist() == [1, 3]


def test_own_choices_of_any_number(tmp_path):
    examples = read_choices(written(tmp_path / "a.jsonl", OWN))
    assert examples.labels == [2, 0] and [row.id for row in examples.examples] == ["a", "b"]
    rows = own_problem(tmp_path).rows("train")
    assert rows_of(rows) == [
        "[CLS] she sings [SEP] he runs [SEP]",
        "[CLS] she sings [SEP] the door [SEP]",
        "[CLS] she sings [SEP] and [SEP]",
        "[CLS] he runs [SEP] she sings [SEP]",
        "[CLS] he runs [SEP] she opens the door and runs [SEP]",
    ]
    assert rows.group_starts.tolist() == [0, 3, 5]


def test_a_label_may_be_written_as_pandas_writes_a_column_of_numbers(tmp_path):
    """Otherwise 0.0 would be refused as a label."""
    path = written(tmp_path / "a.jsonl", lines(GOOD, {**GOOD, "label": 1.0}, {**GOOD, "label": "1"}))
    assert repr(read_choices(path).labels) == "[0, 1, 1]"


@pytest.mark.parametrize("label", ["-1", "-1.0", " ", "1.0"])
def test_a_label_in_csv_is_read_as_in_json(tmp_path, label):
    """A CSV with hidden labels (-1), or with whole numbers as pandas writes them, would be refused."""
    labels = read_swag(written(tmp_path / "test.csv", swag([label, label]))).labels
    assert labels == ([1, 1] if label == "1.0" else None)


def test_choices_of_ones_own_in_csv_are_told_where_they_belong(tmp_path):
    """The user would only be told that the CSV lacks SWAG's column sent1."""
    path = written(tmp_path / "own.csv", "context,choices,label\nshe,he,0\n")
    with pytest.raises(UserError, match="column 'sent1'. .*'label'. Give questions of your own as JSON lines, Parquet"):
        problem_of(CHOICE, {"train": path}).rows("train")


def test_rows_are_cut_as_pairs_are(tmp_path):
    long = lines({"context": "she " * 30, "choices": ["runs " * 3, "sings " * 30], "label": 0})
    rows = own_problem(tmp_path, long, max_length=15).rows("train")
    assert rows.lengths.tolist() == [15] and np.diff(rows.starts).tolist() == [15, 15]
    assert rows_of(rows)[0].endswith("[SEP] runs runs runs [SEP]")


def test_a_model_learns_only_from_choices_that_are_there(tmp_path):
    """Absent choices and rows that fill the batch leave loss and gradient finite, and as for each example alone."""
    problem = own_problem(tmp_path)
    model = problem.make_model(without_dropout(vocab_size=15))
    random_weights(model)

    def step(batch):
        with tf.GradientTape() as tape:
            sums, counts = problem.objective.sums(model(batch), batch), problem.objective.counts(batch)
            loss = sums["loss"]["loss"]
        return float(loss), tape.gradient(loss, model.trainable_variables[5]), float(counts["loss"])

    rows = problem.rows("train")
    batches = LengthBatches(rows, 3, 0, 0, choose_widths(rows.lengths), shuffle=False)
    [batch] = batches.epoch(0)
    assert batch["input_word_ids"].shape[:2] == (3, 3) and np.isneginf(model(batch)["logits"][1, 2])
    loss, gradient, count = step(batch)
    assert count == 2.0 and np.isfinite(loss) and np.isfinite(gradient).all()
    alone = [
        step(
            {
                name: value[index : index + 1, :choices] if value.shape.rank == 3 else value[index : index + 1]
                for name, value in batch.items()
            }
        )
        for index, choices in ((0, 3), (1, 2))
    ]
    assert loss == pytest.approx(alone[0][0] + alone[1][0], rel=1e-5)
    np.testing.assert_allclose(gradient, alone[0][1] + alone[1][1], rtol=1e-4, atol=1e-6)


def test_scores_and_predictions(tmp_path):
    problem = own_problem(tmp_path)
    outputs = {"logits": [np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, -np.inf])]}
    assert problem.evaluate("dev", problem.answers("dev", outputs)) == {"accuracy": 0.5}
    by_example = problem.by_example("dev", problem.answers("dev", outputs))
    assert {name: pairs.tolist() for name, pairs in by_example.items()} == {"accuracy": [[1, 1], [0, 1]]}
    assert problem.baseline("dev") == {"accuracy": 0.5}
    assert (
        list(problem.remarks("dev", problem.answers("dev", outputs))) == []
        and problem.confusion("dev", problem.answers("dev", outputs)) is None
    )
    same = {"logits": [np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.0, -np.inf])]}
    assert "Every example of dev is predicted as choice 0" in next(problem.remarks("dev", problem.answers("dev", same)))
    with problem.writing("dev", str(tmp_path / "out.jsonl")) as write:
        write(next(problem.windows("dev")), problem.answers("dev", outputs))
    again = read_choices(str(tmp_path / "out.jsonl"))
    assert again.labels == [2, 1]
    assert [(row.id, row.beginning) for row in again.examples] == [("a", ""), ("b", "she")]
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(rows[1]["probabilities"]) == 2 and sum(rows[1]["probabilities"]) == pytest.approx(1)
    with pytest.raises(UserError, match="needs finite numbers. Received: 1 of 2 examples"):
        problem.evaluate(
            "dev", problem.answers("dev", {"logits": [np.array([0.0, np.nan, 3.0]), np.array([1.0, 2.0])]})
        )


GOOD = {"context": "c", "choices": ["x", "y"], "label": 0}


@pytest.mark.parametrize(
    "change, message",
    [
        ({"label": 2}, "needs a label from 0 to 1. Received: 2"),
        ({"label": "b"}, "needs a label from 0 to 1. Received: 'b'"),
        ({"label": True}, "needs a label from 0 to 1. Received: True"),
        ({"label": 0.5}, "needs a label from 0 to 1. Received: 0.5"),
        ({"label": -2}, "needs a label from 0 to 1. Received: -2"),
        ({"label": None}, "needs a label, as other examples have"),
        ({"choices": ["x", ""]}, "needs a text for its choice 1. Received: ''"),
        ({"choices": ["x", None]}, "needs a text for its choice 1. Received: None"),
        ({"choices": ["x", "\ud800"]}, "needs a text for its choice 1. Received: half a surrogate pair"),
        ({"choices": ["x"]}, r"needs a list of two choices or more. Received: \['x'\]"),
        ({"choices": "xy"}, "needs a list of two choices or more. Received: 'xy'"),
        ({"context": None}, "needs a text before the choices. Received: None"),
        ({"context": 3}, "needs a text before the choices. Received: 3"),
    ],
)
def test_a_broken_example_is_named_with_its_line_and_all_are_counted(tmp_path, change, message):
    path = written(tmp_path / "a.jsonl", lines(GOOD, {**GOOD, **change}))
    with pytest.raises(UserError, match=f"a.jsonl line 2: {message}"):
        read_choices(path)
    if "as other" not in message:
        path = written(tmp_path / "b.jsonl", lines(*[{"id": "q", **GOOD, **change}] * 3))
        with pytest.raises(UserError, match=rf"b.jsonl line 1 \(id 'q'\): {message}.* 3 examples are malformed"):
            read_choices(path)


def test_of_several_files_the_broken_one_is_named(tmp_path):
    """The user would be told a line of any of them."""
    for name, label in (("a", 0), ("b", 2)):
        written(tmp_path / f"{name}.jsonl", lines({**GOOD, "label": label}))
    with pytest.raises(UserError, match="b.jsonl line 1: needs a label from 0 to 1. Received: 2. Fix the example"):
        read_choices(str(tmp_path / "*.jsonl"))


@pytest.mark.parametrize(
    "content, message",
    [
        (swag(labels=(1, 4)), "train.csv line 3: needs a label from 0 to 3. Received: '4'"),
        (swag().replace("door sings.", ""), "train.csv line 3: needs a text for its choice 2. Received: ''"),
        (swag().replace("ending3", "ending"), "needs a column 'ending3'"),
        (swag().replace("door sings.,", ""), "line 3: needs 12 cells"),
        (HEADER + "\n", "train.csv: needs at least one example"),
    ],
)
def test_a_broken_file_of_swags_is_named(tmp_path, content, message):
    with pytest.raises(UserError, match=message):
        read_swag(written(tmp_path / "train.csv", content))


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(UserError, match="input.long: needs truncate or head_tail for choice"):
        own_problem(tmp_path, long="windows")
    with pytest.raises(UserError, match="choice: needs a file for the split 'test'. Received: train, dev"):
        own_problem(tmp_path).rows("test")
    hidden = own_problem(tmp_path, lines({"context": "c", "choices": ["x", "y"]}))
    assert hidden.rows("dev").extra["labels"].tolist() == [0]
    answers = hidden.answers("dev", {"logits": [np.array([0.0, 1.0])]})
    for refused in (lambda: hidden.evaluate("dev", answers), lambda: hidden.require_labels("dev")):
        with pytest.raises(UserError, match="dev.jsonl: needs labels to score. Received: none"):
            refused()


def test_the_files_of_a_folder(tmp_path):
    for name in ("train.csv", "val.csv.gz", "train_full.csv"):
        (tmp_path / name).write_text("")
    found = find_split_files(SWAG, str(tmp_path))
    assert found == {"train": f"{tmp_path}/train.csv", "dev": f"{tmp_path}/val.csv.gz"}


@pytest.mark.slow
def test_a_step_counts_examples_and_all_outputs_are_judged_as_the_objective_does(tmp_path):
    """In the loop's own step, with batches that are not full."""
    random = np.random.default_rng(0)
    rows = [
        {"context": "she", "choices": random.choice(WORDS, count).tolist(), "label": int(count) - 1}
        for count in (4, *random.integers(2, 5, 10))
    ]
    problem = own_problem(tmp_path, lines(*rows))
    strategy = make_strategy("one")
    with strategy.scope():
        model = problem.make_model(without_dropout(vocab_size=15))
        random_weights(model)
        optimizer = make_optimizer(OptimizerConfig(), 10)
        optimizer.build(model.trainable_variables)
    step = Step(strategy, model, problem.objective, optimizer)
    batches = LengthBatches(problem.rows("dev"), 4, 0, 0, [8], shuffle=False)
    outputs, figures = all_outputs(step, batches.all_batches(), problem.by_token)
    assert problem.evaluate("dev", problem.answers("dev", outputs))["accuracy"] == pytest.approx(figures["accuracy"])
    # Batching the examples of two choices apart changes nothing; rows that fill the last batch have a valid label.
    apart = LengthBatches(problem.rows("dev"), 4, 0, 0, [8], shuffle=False, sizes=[2, 4])
    by_size, figures_by_size = all_outputs(step, apart.all_batches(), problem.by_token)
    assert figures_by_size == pytest.approx(figures, rel=1e-5) and np.isfinite(figures["loss"])
    for one, other in zip(problem.answers("dev", by_size), problem.answers("dev", outputs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    results = step.train(next(iter(batches.all_batches())), tf.constant(0, tf.int64))
    assert float(results["examples"]) == 4.0 and np.isfinite(float(results["grad_norm"]))
