"""Noise in the examples of every kind of task: tags and answers move with the text, and copies are trained on."""

import json

import numpy as np
import pytest
from finetuning import finetune_config, write_sst2, write_tiny_bert
from own_tasks import qa_task
from squad_file import CAFE, GAME, paragraph, squad_tokenizer, write_squad

from keras_bert.config.finetuning import FinetuneConfig, InputConfig
from keras_bert.core.errors import RunStopped
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.multiple_choice.problem import MultipleChoiceProblem
from keras_bert.tasks.multiple_choice.task import MULTIPLE_CHOICE
from keras_bert.tasks.noise import Edit, EditedText, Noise
from keras_bert.tasks.question_answering.data import load_questions, noisy_questions
from keras_bert.tasks.question_answering.problem import QuestionAnsweringProblem
from keras_bert.tasks.tagging.data import noisy_words
from keras_bert.tasks.tagging.label_schemes import read_entities
from keras_bert.tasks.tagging.problem import TaggingProblem
from keras_bert.tasks.tagging.task import NER, TOKENS
from keras_bert.tasks.tagging.word_files import ColumnsReader


class Edits(Noise):
    """Makes the edits that a test gives in the sentence about Mary."""

    def __init__(self, *edits):
        super().__init__("typo")
        self._edits = [Edit(*edit) for edit in edits]

    def edited(self, text, kept=()):
        return EditedText(text, self._edits if text.startswith("Mary") else [])


def tagged(tmp_path, content):
    path = tmp_path / "words.txt"
    path.write_text(content, encoding="utf-8")
    words = ColumnsReader(str(path)).whole()
    return words, read_entities(words.labels, words.starts)


PEOPLE = "Mary B-PER\nAnn I-PER\nmet O\nin O\nNew B-LOC\nYork I-LOC\nCity I-LOC\n\nBob B-PER\nAl B-PER\n"


def test_joined_words_have_the_entity_among_them(tmp_path):
    """In `metin` and `inNew`, the entity that begins in the second word would be lost, or its rest would dangle."""
    words, entities = tagged(tmp_path, PEOPLE)
    #                        "Mary Ann met in New York City"
    noisy = noisy_words(words, entities, Edits((4, 5, ""), (15, 16, "")))
    assert noisy.words == ["MaryAnn", "met", "inNew", "York", "City", "Bob", "Al"]
    assert noisy.labels == ["B-PER", "O", "B-LOC", "I-LOC", "I-LOC", "B-PER", "B-PER"]
    assert noisy.starts.tolist() == [0, 5, 7] and noisy.lines.tolist() == [1, 3, 4, 6, 7, 9, 10]


def test_split_and_lost_words_keep_the_entity_whole(tmp_path):
    words, entities = tagged(tmp_path, PEOPLE)
    noisy = noisy_words(words, entities, Edits((0, 4, ""), (11, 11, " "), (22, 22, " ")))
    assert noisy.words == ["Ann", "me", "t", "in", "New", "Yo", "rk", "City", "Bob", "Al"]
    assert noisy.labels == ["B-PER", "O", "O", "O", "B-LOC", "I-LOC", "I-LOC", "I-LOC", "B-PER", "B-PER"]


def test_labels_that_mark_no_entities_go_with_the_first_part(tmp_path):
    words, _ = tagged(tmp_path, PEOPLE)
    noisy = noisy_words(words, None, Edits((4, 5, ""), (8, 9, ""), (10, 10, " ")))
    assert noisy.words[:2] == ["MaryAnnm", "et"] and noisy.labels[:2] == ["B-PER", "O"]


class CountedSpans(EditedText):
    """An edited text that counts how often its spans are looked at."""

    looks = 0

    def span(self, start, end):
        class Span(tuple):
            def __getitem__(_, index):
                self.looks += 1
                return tuple.__getitem__(_, index)

        return Span(super().span(start, end))


def test_a_word_looks_at_the_words_beside_it_alone(tmp_path, monkeypatch):
    """A file without blank lines is one sentence: looking at all its words for each would take far too long."""
    words, _ = tagged(tmp_path, "ab O\n" * 1000)
    edited = CountedSpans(" ".join(words.words), [Edit(2, 3, "")])
    noise = Edits()
    monkeypatch.setattr(noise, "edited", lambda text: edited)
    assert len(noisy_words(words, None, noise).words) == 999 and edited.looks < 10 * 1000


def test_words_with_inner_blanks_and_sentences_that_would_vanish_stay(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("New York\tN\nis\tV\n\n中\tX\n", encoding="utf-8")
    words = ColumnsReader(str(path)).whole()
    noisy = noisy_words(words, None, Noise("zh-drop=1"))
    assert noisy.words == ["New York", "is", "中"] and noisy.labels == ["N", "V", "X"]


@pytest.mark.parametrize("kind", ["typo=1", "swap=1", "case=1", "homoglyph=1", "zh-shape=1", "zh-double=1", "nospace"])
def test_every_sentence_and_label_is_found_again(kind, tmp_path):
    words, entities = tagged(tmp_path, PEOPLE + "\n中 B-LOC\n国 I-LOC\n人 O\n")
    noisy = noisy_words(words, entities, Noise(kind))
    assert noisy.sentences == 3
    if kind != "nospace":
        assert noisy.labels == words.labels and noisy.words != words.words
    else:
        assert noisy.words == ["MaryAnnmetinNewYorkCity", "BobAl", "中国人"]
        assert noisy.labels == ["B-PER", "B-PER", "B-LOC"]


@pytest.mark.parametrize("task, content", [(NER, "ab B-X\nca I-X\nb O\n\na B-X\n"), (TOKENS, "ab N\nca V\n\na N\n")])
def test_a_tagging_problem_under_noise(task, content, tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(content, encoding="utf-8")
    problem = TaggingProblem(
        task=task,
        source={"train": str(path), "dev": str(path)},
        tokenizer=squad_tokenizer(),
        config=FinetuneConfig(task.name, input=InputConfig(max_length=16)),
    )
    clean = problem.rows("dev")
    with problem.under(Noise("nospace")):
        noisy = problem.rows("dev")
        gold = [label for label in noisy.token_extra["labels"].tolist() if label >= 0]
        answers = [problem.head.labels[label] for label in gold]
        assert len(answers) == 2 and problem.evaluate("dev", answers)[problem.main_metric] == 1.0
    assert problem.rows("dev") is clean and len(clean.token_extra["labels"]) > len(noisy.token_extra["labels"]) - 1


def squad_problem(path):
    config = FinetuneConfig("qa", input=InputConfig(max_length=64, max_question_length=16, stride=16))
    task = qa_task(train=path, dev=path)
    return QuestionAnsweringProblem(task=task, source="", tokenizer=squad_tokenizer(), config=config)


@pytest.mark.parametrize("kind", ["typo=1", "nospace", "addspace=1", "zh-double=1", "zh-drop=1", "zh-sound=1"])
def test_answers_move_with_their_passage(kind, tmp_path):
    """Otherwise the model would be trained and scored on whatever stands at the old offsets."""
    paragraphs = [
        paragraph(CAFE, ("who", "Who founded it?", "José Núñez-Ortega"), ("two", "What?", "“Café Noir”", "Café Noir")),
        paragraph(GAME, ("game", "是由哪个公司开发的？", "光荣和ω-force", "光")),
        paragraph(CAFE, ("lost", "Why?", ("because", 3)), ("when", "When?", "1921")),
    ]
    path = write_squad(tmp_path / "dev.json", *paragraphs)
    problem = squad_problem(path)
    clean = load_questions(problem.task, "dev", "")
    noisy = noisy_questions(clean, Noise(kind))
    assert noisy.passages != clean.passages
    for question, before in zip(noisy.questions, clean.questions):
        passage = noisy.passages[question.passage]
        for answer, old in zip(question.answers, before.answers):
            if old.text == "because":
                assert answer == old
                continue
            assert answer.text.strip() and passage[answer.start : answer.start + len(answer.text)] == answer.text
            assert kind != "nospace" or answer.text == old.text.replace(" ", "")
    firsts = [question.answers[0] for question in noisy.questions]
    for (start, end), answer in zip(noisy.spans.tolist(), firsts):
        assert start < 0 or (start, end) == (answer.start, answer.start + len(answer.text))


def test_a_perfect_model_stays_perfect_on_noisy_questions(tmp_path):
    path = write_squad(
        tmp_path / "dev.json",
        paragraph(CAFE, ("who", "Who founded it?", "José Núñez-Ortega"), ("when", "When was that?", "1921")),
        paragraph(CAFE + " " + CAFE, ("where", "Where is it?", "Paris")),
    )
    problem = squad_problem(path)
    with problem.under(Noise("typo=1")):
        rows = problem.rows("dev")
        outputs = {
            f"{end}_logits": [
                20.0 * (np.arange(length) == place)
                for length, place in zip(rows.lengths, rows.extra[f"{end}_positions"])
            ]
            for end in ("start", "end")
        }
        scores = problem.evaluate("dev", problem.answers("dev", outputs))
        assert scores["exact_match"] == 100.0
    assert problem.rows("dev").ids.tolist() != rows.ids.tolist()


def test_choices_and_their_copies(tmp_path):
    path = tmp_path / "dev.jsonl"
    lines = [{"context": "who was in paris", "question": "the cafe", "choices": ["was founded", "by"], "label": 1}] * 2
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    config = FinetuneConfig.from_mapping({"task": "choice", "noise": {"kinds": ["typo=1", "nospace"], "copies": 2}})
    problem = MultipleChoiceProblem(
        task=MULTIPLE_CHOICE["choice"],
        source={"train": str(path), "dev": str(path)},
        tokenizer=squad_tokenizer(),
        config=config,
    )
    rows, shares = problem.training_rows(seed=0)
    again, _ = problem.training_rows(seed=0)
    other, _ = problem.training_rows(seed=1)
    clean = problem.rows("train")
    assert len(rows) == 5 * len(clean) and rows.extra["labels"].tolist() == [1] * 10
    assert rows.group_starts.tolist() == list(range(0, 21, 2)) and rows.starts[-1] == len(rows.ids)
    assert again.ids.tolist() == rows.ids.tolist() != other.ids.tolist()
    assert rows.ids[: len(clean.ids)].tolist() == clean.ids.tolist() == problem.rows("dev").ids.tolist()
    assert list(shares) == ["typo=1", "typo=1, copy 2", "nospace", "nospace, copy 2"]
    assert shares["nospace"]["words"] == pytest.approx(8 / 9) and 0.5 < shares["typo=1"]["words"] <= 1.0


@pytest.mark.slow
def test_a_run_on_noisy_copies_resumes_bit_for_bit(tmp_path):
    """Otherwise a resumed run would make other copies."""
    init, glue = write_tiny_bert(tmp_path / "bert"), write_sst2(tmp_path / "glue", train=40, dev=16)
    config = finetune_config(
        init, **{"data.folder": glue, "training.epochs": 1, "training.jit_compile": False, "noise.kinds": ["typo=0.5"]}
    )
    whole = FinetuningRuns(config).one(str(tmp_path / "whole"))
    with pytest.raises(RunStopped):
        FinetuningRuns(config).one(str(tmp_path / "stopped"), max_minutes=1e-4)
    resumed = FinetuningRuns(config).one(str(tmp_path / "stopped"))
    assert whole["steps"] == resumed["steps"] == 10 and whole["splits"] == resumed["splits"]
    assert whole["noise"] == resumed["noise"] and 0.3 < whole["noise"]["typo=0.5"]["words"] < 0.7
