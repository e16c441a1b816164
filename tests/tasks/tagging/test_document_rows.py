"""Rows of whole documents: neighbours are in the row, other documents are not, and every path reads the same rows."""

import itertools
import json

import numpy as np
import pytest
import tensorflow as tf
from clocked import without_clock
from finetuning import VOCABULARY, finetune_config, write_tiny_bert
from served import write_served
from written import written

import keras_bert
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.export.saved_model import write_version
from keras_bert.export.serving_function import serving_function
from keras_bert.tasks.finetuned_model import FinetunedModel, predict
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.tagging.problem import TaggingProblem
from keras_bert.tasks.tagging.task import NER, POS
from keras_bert.tasks.tagging.word_files import ColumnsReader, ConlluReader
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

DIGITS = [str(digit) for digit in range(10)]
TOKENIZER = WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *DIGITS, *(f"##{digit}" for digit in DIGITS)]))


def documents_of(lengths, seed=0):
    """[documents][sentences][words]: numbers that count all words; each document has a sentence or more."""
    random, number = np.random.default_rng(seed), itertools.count(100)
    documents = []
    for length in lengths:
        sizes = random.integers(1, 8, length)
        documents.append([[str(next(number)) for _ in range(size)] for size in sizes])
    return documents


def columns(documents, label=lambda word: "B-X" if int(word) % 3 == 0 else "O"):
    """Two empty lines here and there, and a document without sentences."""
    lines = ["-DOCSTART- O", ""]
    for document in documents:
        lines += ["-DOCSTART- O", "", ""]
        for sentence in document:
            lines += [*(f"{word} {label(word)}" for word in sentence), ""]
    return "\n".join(lines) + "\n"


def treebank(documents):
    lines = []
    for document in documents:
        lines.append("# newdoc id = a")
        for sentence in document:
            lines.append("# text = newdoc")
            rows = ((str(number), word, "_", "XY"[int(word) % 2], *"______") for number, word in enumerate(sentence, 1))
            lines += map("\t".join, rows)
            lines.append("")
    return "\n".join(lines) + "\n"


def problem_of(task, path, **settings):
    values = {"task": task.name, "data": {"rows": "document"}, "input": {"max_length": 50}}
    config = FinetuneConfig.from_mapping(values, settings)
    source = {"train": path, "dev": path}
    return TaggingProblem(task=task, source=source, tokenizer=TOKENIZER, config=config)


@pytest.mark.parametrize("task, content", [(NER, columns), (POS, treebank)])
def test_a_row_is_a_stretch_of_one_document_and_labels_each_word_once(task, content, tmp_path):
    """Against the documents themselves: a row that ran into the next one would be no stretch of its words."""
    documents = documents_of([1, 30, 2, 1, 60])
    problem = problem_of(task, written(tmp_path / "words.txt", content(documents)))
    rows, ids = problem.rows("train"), problem.layout("train").rows.ids
    pieces = np.array(TOKENIZER.vocabulary.tokens)
    texts = [list(itertools.chain(*document)) for document in documents]
    labelled = []
    for start, end in itertools.pairwise(rows.starts.tolist()):
        row = "".join(pieces[ids[start + 1 : end - 1]]).replace("##", "")
        words = [row[place : place + 3] for place in range(0, len(row), 3)]
        [text] = [text for text in texts if words[0] in text]
        first = text.index(words[0])
        assert words == text[first : first + len(words)]  # The sentences before and after are there, and no others.
        places = np.flatnonzero(rows.token_extra["labels"][start:end] >= 0)
        assert (places % 3 == 1).all()  # The first of the word's three pieces.
        for word in places // 3:
            labelled.append(words[word])
            before, after = first + word, len(text) - first - word - 1
            assert min(word, len(words) - word - 1) >= min(before, after, 48 // 3 // 4 - 1)
    assert labelled == list(itertools.chain(*texts))
    assert len(rows) < sum(map(len, documents))


@pytest.mark.parametrize("reader, content", [(ColumnsReader, columns), (ConlluReader, treebank)])
def test_windows_of_a_file_are_of_whole_documents(reader, content, tmp_path, monkeypatch):
    """Predicting reads a file in windows; one that ended within a document would cut neighbours off."""
    documents = documents_of([3, 1, 9, 4])
    path = written(tmp_path / "words.txt", content(documents))
    whole = reader(path).whole()
    sizes = [len(document) for document in documents]
    assert np.diff(whole.documents).tolist() == sizes
    for characters in (1, 60, 10**6):
        monkeypatch.setattr("keras_bert.tasks.tagging.tagged_words._CHARACTERS_AT_ONCE", characters)
        found = list(reader(path).windows(by_document=True))
        assert [size for tagged in found for size in np.diff(tagged.documents)] == sizes
        assert (len(found) > 1) == (characters < 10**6)
        assert "".join(line for tagged in found for line in tagged.source) == content(documents)


def test_comments_mark_documents_in_conllu_plus_but_words_do_not(tmp_path):
    plus = "# global.columns = w l\n# newdoc\na X\n# newdoc\n\n# newdoc\nb X\n\n"
    tagged = ColumnsReader(written(tmp_path / "plus", plus)).whole()
    assert tagged.words == ["a", "#", "b"] and tagged.documents.tolist() == [0, 1, 2]
    assert ColumnsReader(written(tmp_path / "plain", "# newdoc\na X\n\nb X\n")).whole().documents is None


@pytest.mark.parametrize("kind", ["tagging", pytest.param("crf", marks=pytest.mark.slow)])
def test_a_model_answers_a_file_as_its_export_answers_the_documents(kind, tmp_path):
    """The folder alone says what a row is; in all three, a CRF decodes a document as a whole."""
    documents = documents_of([4, 12, 1, 7])
    path = written(tmp_path / "words.txt", columns(documents))
    reading = {"task": "ner", "max_length": 30, "rows": "document"}
    folder, output = write_served(tmp_path / "model", kind, **reading), tmp_path / "answers.txt"
    model, bert = FinetunedModel(folder, asked=path), keras_bert.load(folder)
    [window] = model.problem.windows("input")
    answers = model.answers_to(window)
    predict(model, ["input"], str(output))
    texts = [list(itertools.chain(*document)) for document in documents]
    assert [label for tagged in bert.predict(texts) for label in tagged.labels] == answers
    assert len(set(answers)) > 1
    served = tf.saved_model.load(write_version(tmp_path / "served", serving_function(bert)))
    padded = tf.ragged.constant(texts).to_tensor("")
    labels = served.signatures["words"](words=padded)["labels"].numpy()
    assert [label.decode() for row, text in zip(labels, texts) for label in row[: len(text)]] == answers
    labels = served.signatures["serving_default"](text=tf.constant([" ".join(text) for text in texts]))["labels"]
    assert [label.decode() for row, text in zip(labels.numpy(), texts) for label in row[: len(text)]] == answers
    lines = [line.split() for line in output.read_text(encoding="utf-8").splitlines() if line]
    assert [line[0] for line in lines if len(line) == 3 and line[0] != "-DOCSTART-"] == list(itertools.chain(*texts))


def test_a_file_that_marks_no_documents_is_refused(tmp_path):
    path = written(tmp_path / "words.txt", "1 B-X\n\n2 O\n")
    with pytest.raises(UserError, match="words.txt: needs documents.*Received: none"):
        problem_of(NER, path).rows("train")
    table = written(tmp_path / "words.jsonl", json.dumps({"text": ["1"], "label": ["B-X"]}) + "\n")
    with pytest.raises(UserError, match="words.jsonl: needs documents"):
        problem_of(NER, table).rows("dev")
    folder = write_served(tmp_path / "model", "tagging", task="ner", max_length=30, rows="document")
    with pytest.raises(UserError, match="words.txt: needs documents"):
        predict(FinetunedModel(folder, asked=path), ["input"], str(tmp_path / "answers.txt"))
    assert not (tmp_path / "answers.txt").exists()


@pytest.mark.slow
def test_a_run_over_documents_resumes_and_its_folder_says_so(tmp_path):
    """Noise changes words, but documents must stay where they are."""
    random = np.random.default_rng(0)
    words = [list(random.choice(list(VOCABULARY.tokens[5:17]), 6)) for _ in range(120)]
    documents = [words[first : first + 4] for first in range(0, len(words), 4)]
    known = dict.fromkeys(VOCABULARY.tokens[5:11], "B-PER")
    path = written(tmp_path / "words.txt", columns(documents, lambda word: known.get(word, "O")))
    data = {"data.train": path, "data.dev": path, "data.rows": "document", "noise.kinds": ["typo=0.2"]}
    config = finetune_config(write_tiny_bert(tmp_path / "bert"), "ner", **data, **{"training.epochs": 2})
    whole = FinetuningRuns(config).one(str(tmp_path / "whole"))
    with pytest.raises(RunStopped):
        FinetuningRuns(config).one(str(tmp_path / "stopped"), max_minutes=1e-4)
    resumed = FinetuningRuns(config).one(str(tmp_path / "stopped"))
    assert without_clock(whole["splits"]["dev"]) == without_clock(resumed["splits"]["dev"])
    assert whole["steps"] == resumed["steps"] > 4
    again = FinetunedModel(str(tmp_path / "whole" / "model"), {"dev": path})
    assert again.config.data.rows == "document"
    assert again.evaluate("dev")["f1"] == whole["splits"]["dev"]["f1"]
