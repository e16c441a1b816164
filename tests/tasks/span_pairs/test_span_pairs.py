"""WiC and WSC: two spans in texts, from SuperGLUE's files and TFDS, laid out in rows, scored and submitted."""

import dataclasses
import json

import numpy as np
import pytest
from superglue_folder import EXAMPLES, prepare_superglue, write_lines, write_superglue

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.noise import Noise
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.span_pairs.data import SpanPairReader
from keras_bert.tasks.span_pairs.problem import _noisy as noisy_pair
from keras_bert.tasks.span_pairs.task import SPAN_PAIRS, WIC, WSC
from keras_bert.tasks.task import with_own_files
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer(
    Vocabulary(
        [*SPECIAL_TOKENS, "the", "w", "e", "##1", "##2", "##3", "##4", "##s", "saw", "because", "he", "ran", *",.()"]
    )
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_superglue(tmp_path_factory.mktemp("superglue"))


def problem_of(task, folder, **settings):
    values = {"task": task, "data": {"folder": folder}, "input": {"max_length": 24, **settings}}
    return open_problem(FinetuneConfig.from_mapping(values), TOKENIZER)


def marked(rows):
    """The pieces of both spans of each row."""
    found = []
    for begin, starts, ends in zip(rows.starts, rows.extra["span_starts"], rows.extra["span_ends"]):
        row = [TOKENIZER.vocabulary.tokens[id] for id in rows.ids[begin : begin + max(ends)]]
        found.append([" ".join(row[start:end]) for start, end in zip(starts, ends)])
    return found


@pytest.mark.parametrize("name", ["WiC", "WSC"])
def test_the_files_and_tfds_give_the_same(name, folder, tmp_path):
    ours, theirs = problem_of(name.lower(), folder), problem_of(name.lower(), prepare_superglue(folder, tmp_path, name))
    for split in ("train", "dev", "test"):
        found, again = ours.rows(split), theirs.rows(split)
        assert found.ids.tolist() == again.ids.tolist() and marked(found) == marked(again)
        assert (
            found.extra["labels"].tolist() == again.extra["labels"].tolist() == ([0, 0] if split == "test" else [1, 0])
        )
    assert ours.head.labels == ("False", "True") and ours.head.reads_cls == (name == "WiC")
    with pytest.raises(UserError, match="needs labels to evaluate on. Received: none"):
        ours.evaluate("test", np.zeros((2, 2)))


def test_spans_are_the_pieces_that_they_touch(folder):
    """Spans are counted in characters, accents included, in a row of both texts."""
    rows = problem_of("wic", folder).rows("train")
    assert marked(rows) == [["w ##1", "w ##1"], ["w ##4 ##s", "w ##4"]]
    assert rows.extra["span_starts"][1].tolist() == [1, 6] and rows.second_starts.tolist()[1] == 5
    assert marked(problem_of("wsc", folder).rows("train")) == [["the w ##1", "he"], ["w ##4", "he"]]


def wsc_spans(tmp_path, text, *targets):
    rows = [
        {"text": text, "label": True, "target": dict(zip(("span1_index", "span1_text"), target))} for target in targets
    ]
    for row in rows:
        row["target"] |= {"span2_index": 0, "span2_text": text.split()[0]}
    write_lines(tmp_path / "val.jsonl", rows)
    reader = SpanPairReader(WSC, "dev", str(tmp_path))
    return [pair.texts[0][slice(*pair.spans[0])] for pair in reader], reader.notes


def test_a_span_of_wsc_begins_at_a_word_and_leaves_out_what_else_stands_there(tmp_path):
    """The release's span texts have capitals, line breaks and full stops that the text does not have."""
    text = "Mr.  Bo's dog, (the old one), barked. It ran."
    given = (
        (1, "Bo's dog"),
        (0, "mr. bo's"),
        (3, "The Old"),
        (5, "one"),
        (3, "the\nold one"),
        (6, "barked"),
        (7, "it"),
    )
    spans, notes = wsc_spans(tmp_path, text, *given)
    assert spans == ["Bo's dog", "Mr.  Bo's", "the old", "one", "the old one", "barked", "It"] and not notes
    spans, notes = wsc_spans(tmp_path, text, (8, "ran."), (2, "cat"), (0, "Ms."))
    assert spans == ["ran.", "dog,", "Mr."] and len(notes) == 1
    assert "val.jsonl line 2: span1_text 'cat' is 'dog,' in the text; the text's own words are used." in notes[0]


def wic(**change):
    return {**EXAMPLES["WiC"][0], **change}


def wsc(**change):
    return {**EXAMPLES["WSC"][0], "target": {**EXAMPLES["WSC"][0]["target"], **change}}


@pytest.mark.parametrize(
    "task, row, message",
    [
        (
            WIC,
            wic(end1=12),
            "needs start1 and end1, the places of a word in the 11 characters of sentence1. Received: 2",
        ),
        (
            WIC,
            wic(start2=5),
            "needs start2 and end2, the places of a word in the 5 characters of sentence2. Received: 5",
        ),
        (WIC, wic(start1=None), "needs start1 and end1, "),
        (WIC, wic(start1=True), "needs start1 and end1, "),
        (WIC, wic(start1=1, end1=2), "needs start1 and end1, "),
        (WIC, wic(sentence2=3), "needs text. Received: 3"),
        (WIC, wic(label="maybe"), "needs a known label, one of false, true. Received: 'maybe'"),
        (WIC, wic(label=None), "needs a label. Received: None"),
        (WSC, wsc(span1_index=6), "needs span1_index, the number of a word from 0, with the words of span1_text"),
        (WSC, wsc(span2_index="5"), "needs span2_index, the number of a word from 0, "),
        (WSC, wsc(span2_text=""), "needs span2_index, the number of a word from 0, "),
        (WSC, wsc(span2_text=None), "needs a text span2_text. Received: None"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, task, row, message):
    path = write_lines(tmp_path / "val.jsonl", [EXAMPLES[task.folders[0]][0], row])
    with pytest.raises(UserError) as error:
        list(SpanPairReader(task, "dev", str(tmp_path)))
    assert str(error.value).startswith(f"{path} line 2: {message}") and "\n" not in str(error.value)


def test_of_several_files_the_broken_one_is_named(tmp_path):
    """The user would be told a line of any of them."""
    for name, row in (("a", wic()), ("b", wic(start1=None))):
        write_lines(tmp_path / f"{name}.jsonl", [row])
    task = with_own_files(WIC, {"dev": str(tmp_path / "*.jsonl")})
    with pytest.raises(UserError, match="b.jsonl line 1: needs start1 and end1"):
        list(SpanPairReader(task, "dev", ""))


def test_a_span_that_is_cut_off_is_named(tmp_path):
    sentence = "w1 " * 20
    row = wic(sentence1=sentence, start1=57, end1=59)
    path = write_lines(tmp_path / "train.jsonl", [wic(), row])
    with pytest.raises(UserError) as error:
        problem_of("wic", str(tmp_path)).rows("train")
    assert str(error.value) == (
        f"{path} line 2: needs both spans among the first 24 tokens, special tokens included. Received: 'w1' and 'w1'. "
        "Raise input.max_length."
    )
    with pytest.raises(UserError, match="input.long: needs truncate for wic. Received: windows"):
        problem_of("wic", str(tmp_path), long="windows")


@pytest.mark.parametrize("task", SPAN_PAIRS)
@pytest.mark.parametrize("kind", ["typo=1", "addspace=1", "nospace"])
def test_spans_move_with_noise(folder, task, kind):
    """In the texts and in their rows, they still mark what noise made of the same words."""
    problem, clean = problem_of(task, folder, max_length=64), SpanPairReader(SPAN_PAIRS[task], "dev", folder)
    pairs = []
    for before in clean:
        pairs.append(after := noisy_pair(before, Noise(kind)))
        assert after.texts != before.texts
        for which, (old, new) in enumerate(zip(before.spans, after.spans)):
            text, noisy = (pair.texts[which % len(pair.texts)] for pair in (before, after))
            words, found = text[slice(*old)], noisy[slice(*new)]
            if kind == "typo=1":  # Typos leave the blanks, and so the numbers of the words.
                first = text[: old[0]].count(" ")
                typed = " ".join(noisy.split()[first : first + len(words.split())])
                assert found == typed.strip(".,()")
            else:
                assert found.replace(" ", "") == words.replace(" ", "") and found == found.strip()
    with problem.under(Noise(kind)):
        rows, expected = problem.rows("dev"), problem._rows_of(pairs)
        assert rows.ids.tolist() == expected.ids.tolist() and rows.extra["labels"].tolist() == [1, 0]
        for name in ("span_starts", "span_ends"):
            assert rows.extra[name].tolist() == expected.extra[name].tolist()


@pytest.mark.parametrize("task, words", [("wic", ["false", "true"]), ("wsc", ["False", "True"])])
def test_scores_and_the_submission_as_the_server_wants_it(folder, tmp_path, task, words):
    problem = problem_of(task, folder)
    logits = np.array([[1.0, 0.0], [0.0, 3.0]])
    assert problem.evaluate("dev", logits) == {"accuracy": 0.0} and problem.baseline("dev") == {"accuracy": 0.5}
    [window] = problem.windows("test")
    with problem.writing("test", str(tmp_path)) as write:
        write(window, logits)
    written = (tmp_path / f"{SPAN_PAIRS[task].folders[0]}.jsonl").read_text().splitlines()
    assert list(map(json.loads, written)) == [{"idx": 0, "label": words[0]}, {"idx": 1, "label": words[1]}]
    with problem.writing("dev", str(tmp_path / "dev.jsonl")) as write:
        write(window, logits)
    first = json.loads((tmp_path / "dev.jsonl").read_text().splitlines()[0])
    assert first["label"] == "False" and first["idx"] == 0 and len(first["spans"]) == 2
    with pytest.raises(UserError, match="needs an idx to identify it in the submission"):
        with problem.writing("test", str(tmp_path)) as write:
            write(dataclasses.replace(window, examples=[window.examples[0]._replace(number=None)]), logits[:1])
