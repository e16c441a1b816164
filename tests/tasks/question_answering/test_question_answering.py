"""From a file to rows, and from a model's outputs to scores and files of answers."""

import json

import numpy as np
import pytest
from goldens import COMMITTED
from own_tasks import qa_task
from served import BYTE_VOCABULARY
from squad_file import CAFE, GAME, paragraph, squad_tokenizer, write_squad

from keras_bert.config.finetuning import FinetuneConfig, InputConfig
from keras_bert.core.errors import MissingData, UserError
from keras_bert.data.batches.length_batches import LengthBatches, choose_widths
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.question_answering.decoding import Decoded, Span
from keras_bert.tasks.question_answering.problem import QuestionAnsweringProblem
from keras_bert.text.tokenizers import make_tokenizer

LONG = " ".join([CAFE] * 6)


@pytest.fixture
def files(tmp_path):
    answerable = [
        paragraph(CAFE, ("who", "Who founded it?", "José Núñez-Ortega"), ("what", "What?", "“Café Noir”", "Café Noir")),
        paragraph(GAME, ("game", "是由哪个公司开发的？", "光荣和ω-force")),
        paragraph(LONG, ("far", "Where?", ("Paris", LONG.rindex("Paris")))),
    ]
    plain = write_squad(tmp_path / "plain.json", *answerable)
    mixed = write_squad(tmp_path / "mixed.json", *answerable, paragraph(CAFE, ("none", "Why?"), ("nothing", "How?")))
    return {"plain": plain, "mixed": mixed}


def problem_of(task, tokenizer=None, task_record=None, **settings):
    config = FinetuneConfig(task.name, input=InputConfig(**settings))
    return QuestionAnsweringProblem(task, "", tokenizer or squad_tokenizer(), config, task_record=task_record)


def problem(path, scoring="words"):
    task = qa_task(train=path, dev=path, test=path, scoring=scoring)
    return problem_of(task, max_length=64, stride=16, max_question_length=16)


def gold_outputs(problem, split="dev", noise=1.0):
    """The outputs of a perfect model: 20 at the answer's ends, or at [CLS], in every window."""
    rows, rng = problem.rows(split), np.random.default_rng(0)
    return {
        f"{end}_logits": [
            (rng.normal(0, noise, length) + 20 * (np.arange(length) == place)).astype("float32")
            for length, place in zip(rows.lengths, rows.extra[f"{end}_positions"])
        ]
        for end in ("start", "end")
    }


def write(problem, split, answers, folder):
    """Writes answers as `predict` does, in windows of two."""
    with problem.writing(split, str(folder)) as write:
        names = list(answers)
        for window in (names[:2], names[2:]):
            write(window, {name: answers[name] for name in window})


def written(folder):
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir()}


def test_a_perfect_model_scores_everything_and_writes_the_texts(files, tmp_path):
    """Through offsets, windows and decoding, the answers come back as they stand in the file."""
    task = problem(files["plain"])
    outputs = gold_outputs(task)
    assert len(task.rows("dev")) > 4, "the long passage takes several windows"
    assert (task.main_metric, task.metric_names) == ("f1", ("f1", "exact_match"))
    assert task.evaluate("dev", task.answers("dev", outputs)) == {"exact_match": 100.0, "f1": 100.0}
    write(task, "dev", task.answers("dev", outputs), tmp_path / "out")
    content = written(tmp_path / "out")
    assert content["predictions.json"] == {
        "who": "José Núñez-Ortega",
        "what": "“Café Noir”",
        "game": "光荣和ω-force",
        "far": "Paris",
    }
    assert set(content) == {"predictions.json", "nbest.json"}
    best = content["nbest.json"]["far"][0]
    assert (best["text"], best["start"]) == ("Paris", LONG.rindex("Paris")) and best["probability"] > 0.99
    assert all(len(answers) == 20 for answers in content["nbest.json"].values())


def test_characters_are_scored_for_chinese(files):
    task = problem(files["plain"], scoring="characters")
    assert task.main_metric == "f1"
    scores = task.evaluate("dev", task.answers("dev", gold_outputs(task)))
    assert scores == {"f1": 100.0, "exact_match": 100.0, "average": 100.0} and set(scores) == set(task.metric_names)


def test_unanswerable_questions_have_a_null_and_a_threshold(files, tmp_path):
    task = problem(files["mixed"])
    assert task.task.unanswerable and task.main_metric == "best_f1"
    outputs = gold_outputs(task)
    scores = task.evaluate("dev", task.answers("dev", outputs))
    assert scores["f1"] == scores["NoAns_f1"] == scores["best_exact"] == 100.0 and set(task.metric_names) < set(scores)
    write(task, "dev", task.answers("dev", outputs), tmp_path / "out")
    content = written(tmp_path / "out")
    assert content["predictions.json"]["none"] == "" and content["predictions.json"]["far"] == "Paris"
    assert content["null_odds.json"]["none"] > 0 > content["null_odds.json"]["who"]
    assert content["nbest.json"]["none"][0]["text"] == ""


def test_the_threshold_is_tuned_and_used(files, tmp_path):
    """A model whose null score is too high answers nothing at 0, and everything right at the tuned threshold."""
    task = problem(files["mixed"])
    outputs = gold_outputs(task)
    for row in (*outputs["start_logits"], *outputs["end_logits"]):
        row[0] += 60
    before = task.evaluate("dev", task.answers("dev", outputs))
    assert before["HasAns_f1"] == 0.0 and before["best_f1"] == 100.0
    task.tune("dev", task.answers("dev", outputs))
    assert task.null_threshold == before["best_f1_thresh"] > 0
    after = task.evaluate("dev", task.answers("dev", outputs))
    assert after["tuned_f1"] == after["tuned_exact"] == 100.0 and after["tuned_thresh"] == task.null_threshold
    # The untuned scores stay beside the tuned ones, under names of their own.
    assert {name: after[name] for name in before} == before and not any("tuned" in name for name in before)
    assert set(task.metric_names) == {"best_f1", "best_exact", "f1", "exact", "tuned_f1", "tuned_exact"}
    assert set(task.metric_names) <= set(task.baseline("dev"))
    write(task, "dev", task.answers("dev", outputs), tmp_path / "out")
    answers = written(tmp_path / "out")["predictions.json"]
    assert answers["who"] == "José Núñez-Ortega" and answers["none"] == ""


@pytest.mark.parametrize(("name", "scoring"), [("plain", "words"), ("plain", "characters"), ("mixed", "words")])
def test_the_scores_are_the_means_of_those_of_the_questions(files, name, scoring):
    """Otherwise a bootstrap over the questions would describe other scores."""
    task = problem(files[name], scoring)
    answers = task.answers("dev", gold_outputs(task, noise=12.0))
    if task.task.unanswerable:
        task.tune("dev", answers)
    scores, by_example = task.evaluate("dev", answers), task.by_example("dev", answers)
    assert {*by_example} == {metric for metric in task.metric_names if not metric.startswith("best")}
    for metric, (above, below) in ((metric, pairs.T) for metric, pairs in by_example.items()):
        assert 0 < above.sum() < below.sum() == len(answers)
        assert 100 * above.sum() / below.sum() == pytest.approx(scores[metric])


def test_the_tuned_threshold_is_that_of_the_best_f1_in_whatever_order_the_scores_are_summed(tmp_path):
    """The order of summing changes a sum's last bit, which must not be taken for a threshold that does not hold."""
    asked = [(str(number), "who?", "b c d") for number in range(40)]
    unanswerable = [(str(number), "who?") for number in range(40, 60)]
    task = problem(write_squad(tmp_path / "a.json", paragraph("b c d e f g h", *asked, *unanswerable)))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        answers = {}
        for number in range(60):
            text = " ".join("bcdefgh"[: rng.integers(1, 8)])
            odds = rng.normal(-1 if number < 40 else 1)
            answers[str(number)] = Decoded([Span(text, 0, len(text), 0.0, 0.0)], Span("", 0, 0, odds, 0.0))
        scores = task.evaluate("dev", answers)
        task.tune("dev", answers)
        assert task.null_threshold == scores["best_f1_thresh"] != 0.0
        assert task.evaluate("dev", answers)["tuned_f1"] == pytest.approx(scores["best_f1"])


def test_where_answering_nothing_is_best_the_tuned_threshold_does_so(tmp_path):
    path = write_squad(tmp_path / "a.json", paragraph(GAME, ("1", "谁？"), ("2", "谁？"), ("3", "谁？", "光荣")))
    task = problem(path)
    rows = task.rows("dev")
    outputs = {name: [np.zeros(n, "float32") for n in rows.lengths] for name in ("start_logits", "end_logits")}
    for row in (*outputs["start_logits"], *outputs["end_logits"]):
        row[0] = -9.0
    scores = task.evaluate("dev", task.answers("dev", outputs))
    assert scores["best_f1"] == pytest.approx(200 / 3) and scores["f1"] == 0.0
    task.tune("dev", task.answers("dev", outputs))
    assert task.evaluate("dev", task.answers("dev", outputs))["tuned_f1"] == scores["best_f1"]


def test_a_file_without_answers_is_predicted_on_and_not_scored(files, tmp_path):
    content = json.load(open(files["plain"], encoding="utf-8"))
    for paragraph_ in content["data"][0]["paragraphs"]:
        for question in paragraph_["qas"]:
            del question["answers"]
    (tmp_path / "hidden.json").write_text(json.dumps(content), encoding="utf-8")
    task = problem_of(qa_task(test=str(tmp_path / "hidden.json"), unanswerable=False), max_length=80)
    rows = task.rows("test")
    assert rows.extra == {}
    outputs = {name: [np.zeros(n, "float32") for n in rows.lengths] for name in ("start_logits", "end_logits")}
    write(task, "test", task.answers("test", outputs), tmp_path / "out")
    assert set(written(tmp_path / "out")["predictions.json"]) == {"who", "what", "game", "far"}
    answers = task.answers("test", outputs)
    for refused in (lambda: task.evaluate("test", answers), lambda: task.require_labels("test")):
        with pytest.raises(UserError, match="hidden.json: needs answers to evaluate on. Received: the split 'test'"):
            refused()


def test_rows_go_into_batches_of_like_length(files):
    """Answers' positions stay at their pieces."""
    task = problem(files["mixed"])
    rows = task.rows("train")
    batches = LengthBatches(rows, 4, seed=0, pad_id=0, widths=choose_widths(rows.lengths, most=3))
    seen = 0
    for batch in batches.all_batches():
        batch = {name: value.numpy()[batch["example_weights"].numpy() > 0] for name, value in batch.items()}
        ends = np.take_along_axis(batch["input_type_ids"], batch["end_positions"][:, None], axis=1)[:, 0]
        assert (ends == (batch["end_positions"] > 0)).all(), "an answer is in the passage, no answer at [CLS]"
        seen += len(ends)
    assert seen == len(rows)


def test_warnings_name_the_file(tmp_path):
    path = write_squad(tmp_path / "a.json", paragraph(CAFE, ("1", "Who?", ("Nobody", 0)), ("2", "When?", "1921")))
    task = problem(path)
    assert len(task.rows("train")) == 1 and len(task.rows("dev")) == 2
    assert task.rows("dev").extra["example_weights"].tolist() == [0.0, 1.0]
    assert task.notes[0] == f"{path}: answers that are not in their passage: 1 (the first: '1')"


def test_lengths_without_room_are_refused(files):
    with pytest.raises(UserError, match="max_length: needs at least 68"):
        problem_of(qa_task(train=files["plain"]), max_length=67)
    with pytest.raises(UserError, match="input.long: needs truncate or windows for qa. Received: head_tail"):
        problem_of(qa_task(train=files["plain"]), long="head_tail")


def test_questions_of_which_none_has_an_answer_are_not_trained_on(files, tmp_path):
    """The model would learn to answer nothing."""
    path = write_squad(tmp_path / "a.json", paragraph(CAFE, ("1", "Who?"), ("2", "When?")))
    with pytest.raises(UserError, match=r"a.json: needs questions with an answer to .* Received: none for all 2. Give"):
        problem_of(qa_task(train=path, dev=path)).require_different_answers()
    problem_of(qa_task(train=files["mixed"], dev=path)).require_different_answers()


def test_roberta_needs_room_for_the_four_special_tokens_of_its_pairs(files):
    """If they got as much room as BERT's pairs need, it would end in a traceback."""
    settings = {"tokenizer": make_tokenizer(BYTE_VOCABULARY), "max_question_length": 15}
    with pytest.raises(UserError, match="max_length: needs at least 20.* Received: 19"):
        problem_of(qa_task(train=files["plain"]), max_length=19, **settings)
    assert len(problem_of(qa_task(train=files["plain"]), max_length=20, **settings).rows("train"))


def test_a_small_roberta_from_elsewhere_answers(files):
    """If only three special tokens were counted, its questions would leave no room for the passage."""
    model = FinetunedModel(f"{COMMITTED}/roberta_spans", asked=files["plain"])
    assert model.config.input.max_length == 24 and model.config.input.max_question_length == 19


def test_a_model_keeps_the_length_of_its_answers(files):
    """`predict` must not search for answers of up to 30 pieces where config.json, and so the export, says otherwise."""
    task, settings = qa_task(train=files["plain"]), {"max_length": 64, "stride": 16, "max_question_length": 16}
    for task_record, longest in ({}, 30), ({"max_answer_length": 1}, 1):
        found = problem_of(task, task_record=task_record, **settings)
        answers = found.answers("dev", gold_outputs(found)).values()
        spans = [span for answer in answers for span in answer.spans]
        assert found.task_record()["max_answer_length"] == longest
        assert any(" " in span.text for span in spans) == (longest > 1)
    with pytest.raises(UserError, match="config.json: keras_bert.max_answer_length: needs a value above 0"):
        problem_of(task, task_record={"max_answer_length": 0}, **settings)


def test_what_one_run_tuned_is_not_used_by_the_next(files):
    """Seeds share their problem: the second seed's figures would be at the first one's threshold."""
    task = problem(files["mixed"])
    names = task.metric_names
    task.tune("dev", task.answers("dev", gold_outputs(task)))
    task.null_threshold = 3.0
    task.forget_tuning()
    assert task.null_threshold == 0.0 and task.metric_names == names


def test_a_task_without_files_asks_for_them():
    with pytest.raises(MissingData, match="qa: needs files. Received: none. Give --train and --dev."):
        problem_of(qa_task())
