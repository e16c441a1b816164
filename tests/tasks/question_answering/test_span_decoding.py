"""The best of all legal answers, found here one by one, and cut from the passage as it stands."""

import numpy as np
import pytest
from numpy_decoding import decode_by_numpy, window_owners
from squad_file import CAFE, GAME, squad_tokenizer

from keras_bert.core.errors import UserError
from keras_bert.tasks.question_answering.data import AnsweredQuestions
from keras_bert.tasks.question_answering.decoding import decode, n_best_list
from keras_bert.tasks.question_answering.squad_json import Question
from keras_bert.tasks.question_answering.windows import question_windows

PASSAGES = [CAFE, "", GAME, f"{CAFE} {CAFE} Café."]


def windows_of(max_length=30, stride=6):
    questions = [Question(str(number), "who", passage, None) for number, passage in enumerate([0, 1, 2, 3, 0])]
    answered = AnsweredQuestions(PASSAGES, questions, None, "")
    return answered, question_windows(answered, squad_tokenizer(), max_length, stride, 4)


def random_outputs(windows, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: [rng.normal(size=length).astype("float32") for length in windows.rows.lengths]
        for name in ("start_logits", "end_logits")
    }


def all_spans(answered, windows, outputs, number, longest):
    """{text: (score, start, end)} of every legal span, the best of each text."""
    passage = answered.questions[number].passage
    rows = range(windows.first_rows[number], windows.first_rows[number + 1])
    owners = window_owners(windows.begins[rows.start : rows.stop], windows.lengths[rows.start : rows.stop])
    begin = windows.passages.splits[passage]
    best = {}
    for window, row in enumerate(rows):
        first = windows.rows.second_starts[row]
        for i in range(windows.lengths[row]):
            piece = windows.begins[row] + i
            for j in range(i, min(i + longest, windows.lengths[row])):
                score = float(outputs["start_logits"][row][first + i]) + float(outputs["end_logits"][row][first + j])
                start = windows.passages.starts[begin + piece]
                end = windows.passages.ends[begin + windows.begins[row] + j]
                text = answered.passages[passage][start:end]
                if owners[piece] == window and (text not in best or score > best[text][0]):
                    best[text] = (score, start, end)
    return best


@pytest.mark.parametrize("max_length, stride, longest", [(30, 6, 7), (30, 6, 100), (384, 128, 1), (20, 3, 5)])
def test_the_best_of_all_legal_spans_are_found(max_length, stride, longest):
    answered, windows = windows_of(max_length, stride)
    outputs = random_outputs(windows)
    for number, decoded in enumerate(decode(answered, windows, outputs, longest, n_best=20)):
        best = all_spans(answered, windows, outputs, number, longest)
        expected = sorted((-score, start, end) for score, start, end in best.values())[:20]
        assert [(-span.score, span.start, span.end) for span in decoded.spans] == expected
        passage = answered.passages[answered.questions[number].passage]
        assert all(span.text == passage[span.start : span.end] for span in decoded.spans)
        assert len({span.text for span in decoded.spans}) == len(decoded.spans)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("max_length, stride, longest, n_best", [(30, 6, 7, 20), (20, 1, 1, 100), (384, 128, 30, 3)])
def test_answers_are_those_of_numpy(max_length, stride, longest, n_best, rounded, monkeypatch):
    """To the bit, and in the same order where scores are equal, however many pieces are decoded at once."""
    answered, windows = windows_of(max_length, stride)
    outputs = random_outputs(windows, seed=n_best)
    if rounded:
        outputs = {name: [np.round(row) for row in rows] for name, rows in outputs.items()}
    expected = list(decode_by_numpy(answered, windows, outputs, longest, n_best))
    for at_once in (1, 1 << 16):
        monkeypatch.setattr("keras_bert.tasks.question_answering.decoding._PIECES_AT_ONCE", at_once)
        assert list(decode(answered, windows, outputs, longest, n_best)) == expected


def test_sums_that_are_equal_in_float32_alone_are_ranked():
    """Otherwise the first answer in the passage would be called the best."""
    answered, windows = windows_of(384, 128)
    outputs = {name: [np.zeros_like(row) for row in rows] for name, rows in random_outputs(windows).items()}
    first = windows.rows.second_starts[0]
    outputs["start_logits"][0][first : first + 3] = np.float32(1e8)
    outputs["end_logits"][0][first + 2] = np.float32(1)
    assert list(decode(answered, windows, outputs)) == list(decode_by_numpy(answered, windows, outputs))
    [best, *_] = next(decode(answered, windows, outputs)).spans
    assert best.end_logit == 1.0


def test_texts_that_stand_often_do_not_crowd_out_others():
    """At one piece a span, there are fewer texts than spans, and fewer than asked for."""
    answered, windows = windows_of()
    outputs = random_outputs(windows)
    decoded = list(decode(answered, windows, outputs, 1, n_best=100))[3]
    assert {span.text for span in decoded.spans} == set(all_spans(answered, windows, outputs, 3, 1))


def test_no_answer_has_the_lowest_score_of_all_windows():
    answered, windows = windows_of()
    outputs = random_outputs(windows)
    for number, decoded in enumerate(decode(answered, windows, outputs)):
        rows = range(windows.first_rows[number], windows.first_rows[number + 1])
        lowest = min(float(outputs["start_logits"][row][0]) + float(outputs["end_logits"][row][0]) for row in rows)
        assert decoded.null.score == lowest
        assert decoded.null_odds == lowest - (decoded.spans[0].score if decoded.spans else 0.0)


def test_a_passage_without_pieces_is_answered_with_nothing():
    answered, windows = windows_of()
    decoded = list(decode(answered, windows, random_outputs(windows)))[1]
    assert decoded.best_text == "" and decoded.spans == []
    assert [answer["text"] for answer in n_best_list(decoded, with_null=False)] == [""]


def test_the_list_has_probabilities_and_no_answer_in_its_place():
    answered, windows = windows_of()
    decoded = list(decode(answered, windows, random_outputs(windows), n_best=5))[0]
    plain, with_null = n_best_list(decoded, False), n_best_list(decoded, True)
    assert len(plain) == 5 and len(with_null) == 6
    scores = np.array([answer["start_logit"] + answer["end_logit"] for answer in with_null])
    assert (np.diff(scores) <= 0).all() and "" in [answer["text"] for answer in with_null]
    np.testing.assert_allclose([answer["probability"] for answer in with_null], np.exp(scores) / np.exp(scores).sum())
    assert [answer["text"] for answer in plain] == [answer["text"] for answer in with_null if answer["text"]]


def test_outputs_that_are_broken_or_of_other_rows_are_refused():
    answered, windows = windows_of()
    outputs = random_outputs(windows)
    outputs["end_logits"][2][3] = np.nan
    message = f"needs finite numbers. Received: 1 of {len(windows.rows)} windows with others"
    with pytest.raises(UserError, match=message):
        list(decode(answered, windows, outputs))
    for wrong in (outputs["start_logits"][:-1], [row[:-1] for row in outputs["start_logits"]]):
        with pytest.raises(ValueError, match="start_logits: needs an array of the row's length"):
            list(decode(answered, windows, {**outputs, "start_logits": wrong}))
