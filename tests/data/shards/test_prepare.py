import random

import prepared
import pytest
from prepared import VOCABULARY

from keras_bert.config.corpus import CorpusConfig, FilterConfig
from keras_bert.core.errors import UserError
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.corpus.held_out import (
    is_validation,
    split_documents,
    text_hash,
    training_documents,
    training_hashes_from,
)
from keras_bert.data.shards.prepare import prepare as prepare_text
from keras_bert.data.shards.prepared_folder import is_prepared
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.text.vocabulary import Vocabulary


def prepare(documents, folder, share, shard_megabytes=16.0, **options):
    settings = prepared.shard_settings(VOCABULARY, True, share, shard_megabytes)
    return prepared.prepare(documents, folder, settings, **options)


def make_documents(count):
    return [f"The cat saw {n}. A dog saw the bird.\n\nThe bird saw {n + 1}." for n in range(count)]


def read_texts(folder):
    """Every document of a shard folder, its pieces joined."""
    shards = ShardSet.open(folder, VOCABULARY)
    for name in shards.names:
        tokens, sentences, documents = shards.read(name)
        for first, last in zip(documents, documents[1:]):
            rows = [tokens[sentences[row] : sentences[row + 1]] for row in range(first, last)]
            yield " | ".join(" ".join(VOCABULARY.tokens[token] for token in row).replace(" ##", "") for row in rows)


def as_pieces(n):
    return f"the cat saw {n} . | a dog saw the bird . | the bird saw {n + 1} ."


def test_every_document_stands_on_one_side_in_order(tmp_path, monkeypatch):
    """Batching must not scramble documents or their sentences."""
    monkeypatch.setattr("keras_bert.data.shards.prepare.BATCH_CHARACTERS", 500)
    documents = make_documents(300)
    report = prepare(iter(documents), tmp_path / "out", 0.5, shard_megabytes=0.002)
    sides = {False: [], True: []}
    for n, document in enumerate(documents):
        sides[is_validation(document, 0.5)].append(as_pieces(n))
    assert list(read_texts(tmp_path / "out/train")) == sides[False]
    assert list(read_texts(tmp_path / "out/validation")) == sides[True]
    assert len(ShardSet.open(tmp_path / "out/train").names) > 1
    assert report.documents == {"train": len(sides[False]), "validation": len(sides[True])}
    assert report.sentences.total() == 900


def test_the_side_is_a_function_of_the_text():
    documents = make_documents(500)
    sides = dict(split_documents(documents, 0.1))
    shuffled = random.Random(0).sample(documents, len(documents))
    assert dict(split_documents(shuffled, 0.1)) == sides
    assert sides == {document: is_validation(document, 0.1) for document in documents}
    grown = dict(split_documents(documents, 0.2))
    assert all(grown[document] for document, held_out in sides.items() if held_out)


@pytest.mark.parametrize("share", [1e-6, 1 - 1e-6, 0.5])
@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_neither_side_is_empty_and_order_does_not_matter(share, count):
    """A pipeline's workers each see part of the documents, so they decide by the documents' hashes."""
    documents = make_documents(count)
    sides = dict(split_documents(documents, share))
    assert sorted(sides) == sorted(documents) and len(set(sides.values())) == min(count, 2)
    assert dict(split_documents(documents[::-1], share)) == sides
    hashes = [text_hash(document) for document in documents]
    first = training_hashes_from(share, min(hashes), max(hashes))
    assert {document: text_hash(document) < first for document in documents} == sides


def test_a_larger_share_only_adds_to_what_is_held_out():
    """Also true of documents moved to keep no side empty: they are the nearest to the other side."""
    documents = make_documents(10)
    held_out = [
        {document for document, side in split_documents(documents, share) if side}
        for share in (1e-6, 0.01, 0.2, 0.5, 0.8, 0.99, 1 - 1e-6)
    ]
    assert all(smaller <= larger for smaller, larger in zip(held_out, held_out[1:]))


def test_a_single_document_is_trained_on(tmp_path):
    for share in (0.01, 0.99):
        assert list(split_documents(["One."], share)) == [("One.", False)]
    prepare(["The cat."], tmp_path / "out", 0.5)
    assert ShardSet.open(tmp_path / "out/validation").names == []


def test_exact_duplicates_are_dropped_and_counted(tmp_path):
    """A duplicate that stayed could be on both sides of a held-out split."""
    documents = make_documents(3)
    report = prepare(documents + documents[::-1] * 2, tmp_path / "out", 1e-6)
    assert report.documents == {"train": 2, "validation": 1}
    assert report.dropped == {"duplicate": 6}


def test_many_hashes():
    """As the table of hashes grows, none may be lost, and none found that is not there."""
    texts = [str(n) for n in range(20_000)]
    assert sorted(text for text, _ in split_documents(texts + texts, 0.5)) == sorted(texts)


def test_the_vocabulary_is_learned_from_the_training_side():
    documents = make_documents(200)
    held_out = {document for document in documents if is_validation(document, 0.3)}
    assert set(training_documents(documents + documents, 0.3)) == set(documents) - held_out


def test_what_holds_no_token_is_dropped(tmp_path):
    control = "\u200b\u200b"
    report = prepare([f"The cat.\n\n{control}\n\nA dog.", control, " ", "A zebra."], tmp_path / "out", 0.5)
    assert report.dropped == {"no token in it": 2} and report.empty_sentences == 1
    texts = [*read_texts(tmp_path / "out/train"), *read_texts(tmp_path / "out/validation")]
    assert sorted(texts) == ["a [UNK] .", "the cat . | a dog ."]
    assert report.unknown_share == pytest.approx(1 / 9)
    assert "[UNK]: 11.111% of all tokens\n" in str(report) and "2 documents (no token in it)" in str(report)
    report.unknown_tokens["train"] = 8  # Nothing was said of a vocabulary for another language.
    assert "% of all tokens: the vocabulary does not fit the text\n" in str(report)


def test_nothing_is_an_error_and_leaves_nothing(tmp_path):
    with pytest.raises(UserError, match="needs documents with text"):
        prepare([], tmp_path / "out", 0.1)
    assert list(tmp_path.iterdir()) == []


def test_stopped_before_a_shard_is_finished_nothing_is_left(tmp_path):
    def interrupted():
        yield from make_documents(50)
        assert not (tmp_path / "out").exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(interrupted(), tmp_path / "out", 0.1)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "left over by a kill").touch()
    prepare(make_documents(50), tmp_path / "out", 0.1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["train", "validation", "vocab.txt"]


def test_a_folder_in_use_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(UserError, match=f"{path}: needs a (new or empty )?folder"):
            prepare(make_documents(5), path, 0.1)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_in_use_is_refused_before_repeated_spans_are_compared(tmp_path, monkeypatch):
    """Comparing reads the whole text, which may take hours."""
    (tmp_path / "text").write_text("The cat. A dog. The bird.\n\n" * 3)
    corpus = Corpus([str(tmp_path / "text")], CorpusConfig(filters=FilterConfig(repeated_spans=2)))
    monkeypatch.setattr("keras_bert.data.corpus.documents.read_documents", None)
    with pytest.raises(UserError, match="needs a new or empty folder"):
        prepare_text(corpus, prepared.shard_settings(VOCABULARY, True, 0.5), tmp_path)


def test_the_vocabulary_goes_with_the_shards(tmp_path):
    assert not is_prepared(tmp_path / "out")
    prepare(make_documents(5), tmp_path / "out", 0.1)
    assert is_prepared(tmp_path / "out")
    assert Vocabulary.from_file(tmp_path / "out/vocab.txt").fingerprint == VOCABULARY.fingerprint
    (tmp_path / "out/validation/meta.json").unlink()
    assert not is_prepared(tmp_path / "out")


def test_the_bar_stands_at_what_is_tokenized_and_not_at_what_is_read(tmp_path, monkeypatch):
    """Text is read ahead of the work, so a bar of what was read would be full when a small file begins."""
    monkeypatch.setattr("keras_bert.data.shards.prepare.BATCH_CHARACTERS", 500)
    seen = []
    monkeypatch.setattr(
        "keras_bert.core.terminal_bar.Bar.update", lambda bar, n, place: seen.append((n, place, bar.total))
    )
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path in paths:
        path.write_text("".join(f'{{"text": "The cat saw {n} in {path.stem}."}}\n' for n in range(50)))
    corpus = Corpus(map(str, paths))
    prepare_text(corpus, prepared.shard_settings(VOCABULARY, True, 0.2), tmp_path / "out", 1)
    counts, places, totals = zip(*seen)
    size = paths[0].stat().st_size
    assert sum(counts) == 100 and set(totals) == {2 * size}
    assert places[0] == size and places[-1] == 2 * size and list(places) == sorted(places)
