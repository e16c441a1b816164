"""The problems ner, pos and tokens: from files to rows, and from outputs to scores and files."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
from tiny import random_weights, tiny_config, without_dropout

from keras_bert.config.finetuning import FinetuneConfig, InputConfig, TaskDataConfig
from keras_bert.config.training import OptimizerConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.length_batches import LengthBatches
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.sources import find_split_files
from keras_bert.tasks.tagging.head import TokenClassificationConfig
from keras_bert.tasks.tagging.problem import TaggingProblem
from keras_bert.tasks.tagging.task import NER, POS, TOKENS
from keras_bert.tasks.tagging.word_files import ColumnsReader
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.step import Step, all_outputs
from keras_bert.training.strategy import make_strategy

TOKENIZER = WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, "a", "b", "c", "##a", "##b", "##c"]))
IOB1 = "ab I-X\nca I-X\nb B-X\nc O\n\na I-Y\n"


def written(tmp_path, **contents):
    for name, content in contents.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    return {name: str(tmp_path / name) for name in contents}


def problem_of(task, files, max_length=16, head=None, **data):
    """The problem of these files; `data` holds settings of the recipe's section of that name."""
    config = FinetuneConfig(task.name, data=TaskDataConfig(**data), input=InputConfig(max_length=max_length))
    return TaggingProblem(task=task, source=files, tokenizer=TOKENIZER, config=config, head=head)


def write(problem, split, answers, path):
    """Writes answers as `predict` does."""
    with problem.writing(split, path) as write:
        for window in problem.windows(split):
            write(window, answers[: len(window.tagged.words)])
            answers = answers[len(window.tagged.words) :]


def perfect(problem, split, wrong=()):
    """Outputs with every label right, except the head's first for words in `wrong`; elsewhere they mislead."""
    rows = problem.rows(split)
    labels = rows.token_extra["labels"].copy()
    labels[np.flatnonzero(labels >= 0)[list(wrong)]] = 0
    logits = np.random.default_rng(0).normal(0, 50, (len(labels), problem.head.num_labels))
    for place in np.flatnonzero(labels >= 0):
        logits[place] = 0
        logits[place, labels[place]] = 1
    return {"logits": np.split(logits, rows.starts[1:-1])}


def test_entities_are_learned_as_bio_and_written_in_their_own_scheme(tmp_path):
    problem = problem_of(NER, written(tmp_path, train=IOB1, dev=IOB1))
    assert problem.head.labels == ("O", "B-X", "I-X", "B-Y", "I-Y") and problem.main_metric == "f1"
    rows = problem.rows("train")
    #                                          [CLS] a ##b  c ##a  b  c [SEP] [CLS] a [SEP]
    assert rows.token_extra["labels"].tolist() == [-1, 1, -1, 2, -1, 1, 0, -1, -1, 3, -1]
    scores = problem.evaluate("dev", problem.answers("dev", perfect(problem, "dev")))
    assert scores["f1"] == scores["accuracy"] == scores["recall_Y"] == 1.0
    write(problem, "dev", problem.answers("dev", perfect(problem, "dev")), str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "ab I-X I-X\nca I-X I-X\nb B-X B-X\nc O O\n\na I-Y I-Y\n"
    assert problem.notes == []


def test_the_accuracy_is_that_of_the_file_that_predict_writes(tmp_path):
    """Otherwise a label that breaks the scheme, which `predict` never writes, would count as right."""
    files = written(tmp_path, train=IOB1, dev="a I-X\nb I-X\nc O\n\na B-Y\n", told="a I-X\nb I-X\nc O\n\na B-Y\n")
    for split, scheme, right in (("dev", None, 0.75), ("dev", "iob1", 0.75), ("told", "bio", 0.75)):
        problem = problem_of(NER, files, **({"scheme": scheme} if scheme else {}))
        answers = problem.answers(split, perfect(problem, split))
        write(problem, split, answers, str(tmp_path / "out"))
        rows = [line.split() for line in (tmp_path / "out").read_text().splitlines() if line]
        same = np.mean([gold == answer for _, gold, answer in rows])
        scores = problem.evaluate(split, answers)
        assert scores["accuracy"] == same == right and scores["f1"] == 1.0, (split, scheme)


def test_a_wrong_word_costs_its_entity(tmp_path):
    problem = problem_of(NER, written(tmp_path, train=IOB1))
    scores = problem.evaluate("train", problem.answers("train", perfect(problem, "train", wrong=[1])))
    assert scores["precision"] == scores["recall"] == pytest.approx(2 / 3)
    # In IOB1, what followed it is no longer a second entity of its type, so it is written as I-X.
    assert scores["f1_Y"] == 1.0 and scores["accuracy"] == 0.6


def test_long_sentences_are_judged_word_by_word(tmp_path):
    """Labels go through windows and come back the same."""
    words = "".join(f"{word} {label}\n" for word, label in zip("abc" * 30, ["B-X", "I-X", "O"] * 30))
    problem = problem_of(NER, written(tmp_path, train=words), max_length=12)
    assert len(problem.rows("train")) > 10
    assert problem.evaluate("train", problem.answers("train", perfect(problem, "train")))["f1"] == 1.0
    assert (problem.rows("train").token_extra["labels"] >= 0).sum() == 90


def test_a_file_without_labels_is_predicted_by_a_trained_models_head(tmp_path):
    head = TokenClassificationConfig(("O", "B-X", "I-X"))
    unlabelled = dataclasses.replace(NER, reader=functools.partial(ColumnsReader, labels_needed=False))
    problem = problem_of(unlabelled, written(tmp_path, test="a\nb\n\nc\n"), head=head)
    rows = problem.rows("test")
    assert (rows.token_extra["labels"] == -1).all()
    logits = np.zeros((len(rows.ids), 3))
    logits[:, 2] = 1  # All are I-X, but an entity begins with each sentence all the same.
    outputs = {"logits": np.split(logits, rows.starts[1:-1])}
    write(problem, "test", problem.answers("test", outputs), str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "a B-X\nb I-X\n\nc B-X\n"
    with pytest.raises(UserError, match="test: needs labels to evaluate on"):
        problem.evaluate("test", problem.answers("test", outputs))


def test_words_that_vanish_or_bear_unknown_labels_are_counted_and_predicted(tmp_path):
    files = written(tmp_path, train="a I-X\n\n\u200b I-X\n", dev="b B-Z\nc I-X\n\n\u200b O\n")
    problem = problem_of(NER, files)
    outputs = perfect(problem, "dev")
    notes = " ".join(problem.notes)
    assert "1 words have labels that the model does not have (the first: line 1, B-Z)" in notes
    assert "1 words have no piece and are read as [UNK] (the first: line 4)" in notes
    logits = np.concatenate(outputs["logits"])
    logits[1] = [1, 0, 0]
    scores = problem.evaluate("dev", problem.answers("dev", {"logits": np.split(logits, [4])}))
    assert scores["recall_Z"] == 0.0 and scores["recall_X"] == 1.0 and scores["recall"] == 0.5
    write(problem, "dev", problem.answers("dev", {"logits": np.split(logits, [4])}), str(tmp_path / "out"))
    assert len((tmp_path / "out").read_text().split("\n")) == 5


def test_labels_that_break_their_scheme_are_counted(tmp_path):
    files = written(tmp_path, train="a B-X\nb I-X\nc B-Y\n\na I-Y\n")
    problem = problem_of(NER, files)
    problem.rows("train")
    assert "1 labels break BIO (the first: line 5, I-Y); they are read as conlleval" in problem.notes[0]
    told = problem_of(NER, files, scheme="iob1")
    told.rows("train")
    assert "2 labels break IOB1 (the first: line 1, B-X)" in told.notes[0]


def treebank(*words):
    lines = (f"{number}\t{word}\t_\t{upos}" + "\t_" * 6 for number, (word, upos) in enumerate(words, 1))
    return "# a comment\n" + "\n".join(lines) + "\n\n"


def test_parts_of_speech(tmp_path):
    files = written(tmp_path, train=treebank(("ab", "VERB"), ("c", "ADJ")), dev=treebank(("c", "VERB"), ("b", "_")))
    problem = problem_of(POS, files)
    assert problem.head.labels == ("ADJ", "VERB") and problem.main_metric == "accuracy"
    assert problem.rows("dev").token_extra["labels"].tolist() == [-1, 1, -1, -1]
    logits = [np.array([[0, 0], [0, 1], [1, 0], [0, 0]])]
    assert problem.evaluate("dev", problem.answers("dev", {"logits": logits}))["accuracy"] == 1.0
    write(problem, "dev", problem.answers("dev", {"logits": logits}), str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == treebank(("c", "VERB"), ("b", "ADJ"))


def test_a_treebank_keeps_its_columns_whatever_a_model_was_trained_on(tmp_path):
    """Otherwise the column stored with the model would reach a reader that takes none."""
    files = written(tmp_path, test=treebank(("c", "VERB")))
    problem = problem_of(POS, files, head=TokenClassificationConfig(("ADJ", "VERB")), word="1", label="3")
    problem.require_labels("test")
    assert not {"word", "label"} & problem.task_record().keys()


@pytest.mark.parametrize("content, metric, labels", [("a N\nb V\n", "accuracy", ("N", "V")), (IOB1, "f1", None)])
def test_own_columns_tell_what_their_labels_are(tmp_path, content, metric, labels):
    problem = problem_of(TOKENS, written(tmp_path, train=content))
    assert problem.main_metric == metric and labels in (None, problem.head.labels)
    assert problem_of(TOKENS, {}, head=problem.head).main_metric == metric
    assert problem.evaluate("train", problem.answers("train", perfect(problem, "train")))[metric] == 1.0


@pytest.mark.parametrize(
    "task, train, message",
    [
        (NER, "a NNP\n", "train line 1: needs O, or B-, .* Received: 'NNP'"),
        (NER, "a O\n", "train: needs entities to train on"),
        (POS, treebank(("a", "_")), "train: needs labels to train on"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(tmp_path, task, train, message):
    with pytest.raises(UserError, match=message):
        problem_of(task, written(tmp_path, train=train))


@pytest.mark.parametrize(
    "data, message",
    [
        ({"scheme": "bioes"}, "data.scheme: needs labels that mark entities, .* Received: N, V in .*train"),
        ({"learned_scheme": "bioes"}, "data.learned_scheme: needs labels that mark entities, .* Received: N, V in"),
        ({"texts": ["0", "1"]}, r"data.texts \(--text\): needs a single column, that of the words. Received: 0, 1"),
    ],
)
def test_settings_that_would_change_nothing_are_refused(tmp_path, data, message):
    """They would be ignored, and so would `input.long: head_tail`, because sentences are always read in windows."""
    files = written(tmp_path, train="a N\nb V\n")
    with pytest.raises(UserError, match=message):
        problem_of(TOKENS, files, **data)
    config = FinetuneConfig("tokens", input=InputConfig(long="head_tail"))
    with pytest.raises(UserError, match="input.long: needs truncate or windows for tokens. Received: head_tail"):
        TaggingProblem(task=TOKENS, source=files, tokenizer=TOKENIZER, config=config)
    with pytest.raises(UserError, match="data.scheme: needs a task that reads it, of ner, tokens. Received: pos"):
        open_problem(FinetuneConfig("pos", data=TaskDataConfig(scheme="bio")), TOKENIZER)


def test_a_word_that_is_too_long_for_a_row_is_told_how_long_it_may_be(tmp_path):
    """Rows of a T5 have one special token, not two."""

    class WithoutStart(Vocabulary):
        @property
        def row_pattern(self):
            return super().row_pattern._replace(start=())

    tokenizer = WordPieceTokenizer(WithoutStart(TOKENIZER.vocabulary.tokens))
    config = FinetuneConfig("ner", input=InputConfig(max_length=8))
    problem = TaggingProblem(NER, written(tmp_path, train=f"{'abc' * 3} B-X\na O\n"), tokenizer, config)
    problem.rows("train")
    assert "1 words are longer than 7 pieces and are truncated (the first: line 1)." in problem.notes[0]


def test_what_does_not_fit_together_is_refused(tmp_path):
    files = written(tmp_path, train=IOB1)
    with pytest.raises(UserError, match="ner: needs a model whose labels are O.* Received: ADJ, NOUN"):
        problem_of(NER, files, head=TokenClassificationConfig(("ADJ", "NOUN")))
    with pytest.raises(ValueError, match="scheme: needs one of bio, iob1, bioes. Received: 'iob3'"):
        problem_of(NER, files, scheme="iob3")
    problem = problem_of(NER, files)
    with pytest.raises(UserError, match="ner: needs a file for the split 'dev'. Received: train"):
        problem.rows("dev")
    broken = perfect(problem, "train")
    broken["logits"][0][1] = np.nan
    with pytest.raises(UserError, match="needs finite numbers. Received: 1 of 5 words"):
        problem.evaluate("train", problem.answers("train", broken))


def test_a_model_takes_the_batches_and_the_objective_their_labels(tmp_path):
    problem = problem_of(NER, written(tmp_path, train=IOB1))
    batches = LengthBatches(problem.rows("train"), 3, 0, 0, [12])
    batch = next(iter(batches.epoch(0)))
    model = problem.make_model(tiny_config(), dtype="mixed_bfloat16")
    sums, counts = problem.objective.sums(model(batch), batch), problem.objective.counts(batch)
    assert float(counts["loss"]) == 5.0 and np.isfinite(float(sums["loss"]["loss"]))
    assert model.num_labels == 5 and model.classifier.dtype_policy.name == "mixed_bfloat16"


def test_the_baseline_is_each_words_most_frequent_label(tmp_path):
    """b is mostly X, c was never seen, and most words are N."""
    files = written(tmp_path, train="a N\na N\nb X\nb N\nb X\na N\n", dev="b X\nb N\nc N\nc X\n")
    problem = problem_of(TOKENS, files)
    assert problem.baseline("dev")["accuracy"] == 0.5 and problem.baseline("train")["accuracy"] == pytest.approx(5 / 6)
    entities = problem_of(NER, written(tmp_path, train=IOB1, dev="c I-X\na I-Y\n"))
    assert entities.baseline("dev")["f1"] == pytest.approx(2 / 3)


def test_one_label_for_every_word_is_remarked_and_confusions_are_counted(tmp_path):
    problem = problem_of(TOKENS, written(tmp_path, train="a N\nb V\n", dev="a N\nb V\nc W\n"))
    outputs = {"logits": [np.array([[0, 0], [0, 1], [0, 1], [0, 1], [0, 0]])]}
    assert "Every word of dev is predicted as 'V'" in list(problem.remarks("dev", problem.answers("dev", outputs)))[0]
    assert problem.confusion("dev", problem.answers("dev", outputs)).tolist() == [[0, 1], [0, 1]]
    assert list(problem.remarks("train", problem.answers("train", perfect(problem, "train")))) == []
    assert problem.dev_splits == ("dev",) and problem.task_record() == {"task": "tokens", "max_length": 16}


def test_the_files_of_a_folder(tmp_path):
    for name in ("eng.train", "eng.testa", "README", "en_ewt-ud-train.conllu.gz", "en_ewt-ud-dev.conllu.gz"):
        (tmp_path / name).write_text("")
    folder = str(tmp_path)
    assert find_split_files(NER, folder) == {"train": f"{folder}/eng.train", "dev": f"{folder}/eng.testa"}
    assert list(find_split_files(POS, folder)) == ["train", "dev"]
    (tmp_path / "zh-ud-dev.conllu").write_text("")
    with pytest.raises(UserError, match="needs one file for dev. Received: .*en_ewt-ud-dev.conllu.gz"):
        find_split_files(POS, folder)
    with pytest.raises(UserError, match="needs eng.train or eng.testa or eng.testb, for ner. Received: no such folder"):
        find_split_files(NER, folder + "/none")


def test_a_step_trains_and_all_outputs_are_judged_as_the_objective_does(tmp_path):
    """In the loop's own step: words of long sentences count once each, and rows come back in order."""
    random = np.random.default_rng(0)
    sentences = (random.choice(list("abc"), random.integers(1, 30)) for _ in range(11))
    content = "\n".join("".join(f"{word} {random.choice(['N', 'V', 'W'])}\n" for word in row) for row in sentences)
    problem = problem_of(TOKENS, written(tmp_path, train=content), max_length=12)
    strategy = make_strategy("one")
    with strategy.scope():
        model = problem.make_model(without_dropout())
        random_weights(model)
        optimizer = make_optimizer(OptimizerConfig(), 10)
        optimizer.build(model.trainable_variables)
    step = Step(strategy, model, problem.objective, optimizer)
    batches = LengthBatches(problem.rows("train"), 4, 0, 0, [8, 12], shuffle=False)
    outputs, figures = all_outputs(step, batches.all_batches(), problem.by_token)
    assert problem.evaluate("train", problem.answers("train", outputs))["accuracy"] == pytest.approx(
        figures["accuracy"]
    )
    assert 0 < figures["accuracy"] < 1
    results = step.train(next(iter(batches.all_batches())), tf.constant(0, tf.int64))
    assert np.isfinite(float(results["grad_norm"]))


def test_labels_of_which_the_model_has_none_are_refused_by_the_baseline_too(tmp_path):
    """The baseline comes before training; otherwise the user would learn of it only afterwards."""
    problem = problem_of(TOKENS, written(tmp_path, train="a N\nb V\n", dev="a X\nb Y\n"))
    with pytest.raises(UserError, match="dev: needs labels that the model has, such as N, V. Received: X, Y."):
        problem.baseline("dev")
    assert problem.evaluate("train", ["N", "N"])["accuracy"] == 0.5


def test_the_folder_keeps_the_scheme_that_was_given(tmp_path):
    problem = problem_of(NER, written(tmp_path, train=IOB1), scheme="bioes", label="1")
    assert problem.task_record() == {"task": "ner", "max_length": 16, "scheme": "bioes", "label": 1}


def test_words_are_kept_once_and_their_lines_not_at_all(tmp_path):
    problem = problem_of(TOKENS, written(tmp_path, train="ab N\nab N\nab V\n"))
    tagged = problem._words("train")
    assert tagged.source is None and len({id(word) for word in tagged.words}) == 1
