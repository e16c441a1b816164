"""Rows and windows as run_squad.py lays them out, here piece by piece with its loops, and offsets that hold."""

import random

import numpy as np
import pytest
from hostile_texts import HOSTILE, random_hostile
from numpy_decoding import window_owners
from squad_file import CAFE, GAME, VOCABULARY, squad_tokenizer

from keras_bert.tasks.question_answering.data import LOST, NONE, AnsweredQuestions
from keras_bert.tasks.question_answering.squad_json import Answer, Question
from keras_bert.tasks.question_answering.windows import piece_spans, question_windows, tokenize

WORDS = "the cafe Café was founded “Paris” 1921 naïve ﬁn 光荣 ?! İzmir".split()


def random_questions(seed, count=40):
    rng = random.Random(seed)
    passages = [" ".join(rng.choice(WORDS) for _ in range(rng.randrange(0, 40))) for _ in range(12)]
    questions, spans = [], []
    for number in range(count):
        passage = rng.randrange(len(passages))
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(0, 9)))
        words = passages[passage].split(" ")
        first = rng.randrange(len(words))
        last = min(first + rng.randrange(6), len(words) - 1)
        start, answer = sum(len(word) + 1 for word in words[:first]), " ".join(words[first : last + 1])
        questions.append(Question(str(number), text, passage, (Answer(answer, start),)))
        kind = rng.random() if answer else 0
        spans.append([NONE] * 2 if kind < 0.1 else [LOST] * 2 if kind < 0.2 else [start, start + len(answer)])
    return AnsweredQuestions(passages, questions, np.array(spans, np.int64), "random")


def original_windows(pieces, room, stride):
    """doc_spans of convert_examples_to_features: [(start, length)]."""
    windows, start = [], 0
    while start < len(pieces):
        length = min(len(pieces) - start, room)
        windows.append((start, length))
        if start + length == len(pieces):
            break
        start += min(length, stride)
    return windows or [(0, 0)]


def original_owner(windows, place):
    """The window for which _check_is_max_context is true."""
    best_score, best = None, None
    for number, (start, length) in enumerate(windows):
        end = start + length - 1
        if place < start or place > end:
            continue
        score = min(place - start, end - place) + 0.01 * length
        if best_score is None or score > best_score:
            best_score, best = score, number
    return best


@pytest.mark.parametrize(
    "max_length, stride, max_question, at_once",
    [(24, 5, 6, 4096), (24, 5, 6, 7), (40, 128, 12, 4096), (12, 1, 3, 1), (384, 128, 64, 4096)],
)
def test_rows_are_the_originals(max_length, stride, max_question, at_once, monkeypatch):
    """This holds however many windows are laid out at once."""
    monkeypatch.setattr("keras_bert.tasks.question_answering.windows._WINDOWS_AT_ONCE", at_once)
    answered, tokenizer = random_questions(max_length), squad_tokenizer()
    windows = question_windows(answered, tokenizer, max_length, stride, max_question)
    assert windows.rows.ids.dtype == windows.rows.second_starts.dtype == np.int32
    for array in (windows.rows.starts, windows.first_rows, windows.begins, windows.lengths):
        assert array.dtype == np.int64
    passages = [column.to_list() for column in tokenizer.tokenize_with_offsets(answered.passages)]
    asked_pieces = tokenizer([question.text for question in answered.questions]).to_list()
    row = 0
    for number, (question, span) in enumerate(zip(answered.questions, answered.spans)):
        ids, starts, ends = (column[question.passage] for column in passages)
        asked = asked_pieces[number][:max_question]
        inside = [k for k in range(len(ids)) if starts[k] < span[1] and ends[k] > span[0]] if span[0] >= 0 else []
        expected = original_windows(ids, max_length - len(asked) - 3, stride)
        assert windows.first_rows[number] == row
        for start, length in expected:
            cls, sep = VOCABULARY.cls_id, VOCABULARY.sep_id
            row_ids = windows.rows.ids[windows.rows.starts[row] : windows.rows.starts[row + 1]]
            assert row_ids.tolist() == [cls, *asked, sep, *ids[start : start + length], sep]
            assert windows.rows.second_starts[row] == len(asked) + 2
            positions = [0, 0]
            if inside and start <= inside[0] and inside[-1] < start + length:
                positions = [place - start + len(asked) + 2 for place in (inside[0], inside[-1])]
            assert [windows.rows.extra[f"{end}_positions"][row] for end in ("start", "end")] == positions
            assert windows.rows.extra["example_weights"][row] == float(span[0] != LOST)
            row += 1
        owners = window_owners(*(np.array(column) for column in zip(*expected)))
        assert owners.tolist() == [original_owner(expected, place) for place in range(len(ids))]
    assert row == len(windows.rows) == windows.first_rows[-1]
    assert (windows.rows.lengths <= max_length).all()


def test_what_is_cut_or_not_held_whole_is_counted():
    questions = [
        Question("long", "who was the cafe founded by ?", 0, (Answer("Paris", CAFE.index("Paris")),)),
        Question("wide", "who", 0, (Answer(CAFE, 0),)),
        Question("marks", "who", 1, (Answer("\u200d", 1),)),
    ]
    spans = np.array([[CAFE.index("Paris"), CAFE.index("Paris") + 5], [0, len(CAFE)], [1, 2]])
    answered = AnsweredQuestions([CAFE, "a\u200d b"], questions, spans, "f.json")
    windows = question_windows(answered, squad_tokenizer(), 24, 8, 4)
    assert windows.warnings == (
        "f.json: questions truncated to 4 pieces: 1 (the first: 'long')",
        "f.json: answers without a piece, not trained on: 1 (the first: 'marks')",
        "f.json: answers that no window contains in full, trained as no answer: 1 (the first: 'wide')",
    )
    assert windows.rows.extra["example_weights"].tolist() == [1.0] * (len(windows.rows) - 1) + [0.0]
    assert question_windows(answered, squad_tokenizer(), 384, 128, 64).warnings == windows.warnings[1:2]


@pytest.mark.parametrize("lower_case", [True, False])
def test_pieces_of_an_answer_give_its_text_back(lower_case):
    """In code points of the passage as it stands, with accents, capitals, ideographs and curly quotes."""
    answers = [
        (0, "“Café Noir”"),
        (0, "José Núñez-Ortega"),
        (0, "1921"),
        (1, "光荣和ω-force"),
        (1, "战国无双3"),
        (2, "ﬁn İ"),
    ]
    passages = [CAFE, GAME, "e\u0301 \U0001f600 ﬁn İ end"]
    starts = [passages[passage].index(text) for passage, text in answers]
    spans = np.array([[start, start + len(text)] for start, (_, text) in zip(starts, answers)])
    questions = [Question(str(n), "who", passage, ()) for n, (passage, _) in enumerate(answers)]
    pieces = tokenize(squad_tokenizer(lower_case), passages)
    first, last = piece_spans(AnsweredQuestions(passages, questions, spans, ""), pieces)
    for number, (passage, text) in enumerate(answers):
        begin = pieces.splits[passage]
        found = passages[passage][pieces.starts[begin + first[number]] : pieces.ends[begin + last[number]]]
        assert found == text


@pytest.mark.parametrize("lower_case", [True, False])
def test_offsets_only_grow_whatever_the_text(lower_case):
    """Finding a piece by search relies on it."""
    pieces = tokenize(squad_tokenizer(lower_case), [*HOSTILE, *random_hostile(300, seed=1)])
    for begin, end in zip(pieces.splits[:-1], pieces.splits[1:]):
        for offsets in (pieces.starts, pieces.ends):
            assert (np.diff(offsets[begin:end]) >= 0).all()
    assert (pieces.starts < pieces.ends).all()


def test_lengths_that_leave_no_room_are_refused():
    answered = random_questions(0)
    for lengths in ((67, 128, 64), (384, 0, 64)):
        with pytest.raises(ValueError, match="needs room for the question"):
            question_windows(answered, squad_tokenizer(), *lengths)
