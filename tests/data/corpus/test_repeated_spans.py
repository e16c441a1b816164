"""Repeated spans of sentences, compared with a plain reference."""

import random

import pytest
from c4_filters import without_repeated_spans

from keras_bert.config.corpus import CorpusConfig, FilterConfig
from keras_bert.core.errors import UserError
from keras_bert.data.corpus import repeated_spans
from keras_bert.data.corpus.documents import Corpus
from keras_bert.text.sentences import split_sentences


def random_documents(generator, count):
    """One sentence is so frequent that spans overlap those that they repeat."""
    numbers = [*range(12), *[0] * 9]
    return [
        [f"Sentence {generator.choice(numbers)} is here." for _ in range(generator.randrange(1, 9))]
        for _ in range(count)
    ]


def as_corpus(path, documents, generator, **filters):
    """Two files, with the sentences of a document separated by any white space."""
    texts = [
        "".join(f"{sentence}{generator.choice([' ', '  ', chr(10)])}" for sentence in document)
        for document in documents
    ]
    half = len(texts) // 2
    for name, part in (("a.txt", texts[:half]), ("b.txt", texts[half:])):
        (path / name).write_text("\n\n".join(part), encoding="utf-8")
    return Corpus([str(path / "*.txt")], CorpusConfig(filters=FilterConfig(**filters)))


@pytest.mark.parametrize("most_in_memory", [1 << 22, 40])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_all_but_the_first_are_removed(tmp_path, monkeypatch, length, most_in_memory):
    """Across files and within a document, whether or not the hashes fit into memory."""
    monkeypatch.setattr(repeated_spans, "_MOST_IN_MEMORY", most_in_memory)
    generator = random.Random(length + 7)  # This gives few single sentences, which would make a book.
    documents = random_documents(generator, 120)
    corpus = as_corpus(tmp_path, documents, generator, repeated_spans=length)
    expected = without_repeated_spans(documents, length)
    for _ in range(2):  # The second time, nothing is compared again.
        found = [split_sentences(text) for text in corpus.documents()]
        assert found == [sentences for sentences in expected if sentences]
        assert corpus.report.documents == len(found)
    report = corpus.report
    assert report.removed["repeated_spans"] == sum(map(len, documents)) - sum(map(len, expected)) > 0
    assert report.filtered["repeated_spans"] == len(documents) - len(found)


def test_case_and_spaces_do_not_matter(tmp_path):
    documents = [["One is here.", "Two is here."], ["ONE is here.", "Two  is  here.", "Three is here."]]
    corpus = as_corpus(tmp_path, documents, random.Random(0), repeated_spans=2)
    assert [split_sentences(text) for text in corpus.documents()] == [documents[0], ["Three is here."]]


def test_documents_that_become_too_short_are_dropped(tmp_path):
    documents = [["One is here.", "Two is here."], ["One is here.", "Two is here.", "Three is here."]]
    corpus = as_corpus(tmp_path, documents, random.Random(0), repeated_spans=2, min_sentences=2)
    assert len(list(corpus.documents())) == 1
    assert corpus.report.filtered == {"repeated_spans": 1} and corpus.report.documents == 1


def test_a_paragraph_ends_where_it_ended():
    text = "One is here. Two is here.\n\nThree is here.  Four is here."
    sentences = split_sentences(text)
    assert repeated_spans.without_spans(text, sentences, [1], 1) == ("One is here.\n\nThree is here.  Four is here.", 1)
    assert repeated_spans.without_spans(text, sentences, [0, 1], 2) == ("Four is here.", 3)


@pytest.mark.parametrize(
    ("verse", "rest"),
    [("A A A A", "A A A"), ("A A A A A A B", "A A A B"), ("A B A B A B", "A B A B"), ("A B C A B C", "A B C")],
)
def test_the_first_of_spans_that_overlap_stays(tmp_path, verse, rest):
    """Each repeats the one before, so all of a refrain but its first sentence would be removed."""
    documents = [[f"{word} is here." for word in verse.split()]]
    corpus = as_corpus(tmp_path, documents, random.Random(0), repeated_spans=3)
    assert [split_sentences(text) for text in corpus.documents()] == [[f"{word} is here." for word in rest.split()]]


def test_a_corpus_that_changes_in_between_is_refused(tmp_path):
    """Spans are numbered, and would be removed from the wrong documents."""
    generator = random.Random(5)
    corpus = as_corpus(tmp_path, random_documents(generator, 40), generator, repeated_spans=2)
    list(corpus.documents())
    (tmp_path / "b.txt").write_text("Short.")
    with pytest.raises(UserError, match="changed while it was read"):
        list(corpus.documents())


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(repeated_spans, "_MOST_IN_MEMORY", 10)
    monkeypatch.setattr(repeated_spans.tempfile, "TemporaryDirectory", _full)
    corpus = as_corpus(tmp_path, random_documents(random.Random(0), 20), random.Random(0), repeated_spans=1)
    with pytest.raises(UserError, match="cannot hold the hashes of repeated_spans .No space left.* TMPDIR"):
        list(corpus.documents())


def _full(**options):
    raise OSError(28, "No space left on device")
