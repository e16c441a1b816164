import json

import numpy as np
import pytest
from random_shards import DocumentWriter

from keras_bert.core.errors import UserError
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.data.shards.shard_format import TokenizedDocuments, token_dtype
from keras_bert.text.vocabulary import Vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = Vocabulary(SPECIAL + [f"w{n}" for n in range(95)])
DOCUMENTS = [[[5, 6, 7], [8]], [[9, 1]], [np.array([10, 11], np.int32), np.array([12], np.int32), [99]]]


def write(folder, documents=DOCUMENTS, vocabulary=VOCABULARY, **options):
    with DocumentWriter(folder, vocabulary, **options) as writer:
        for document in documents:
            writer.add(document)
    return folder


def read_documents(shards):
    for name in shards.names:
        tokens, sentences, documents = shards.read(name)
        for first, last in zip(documents, documents[1:]):
            yield [tokens[sentences[row] : sentences[row + 1]].tolist() for row in range(first, last)]


def test_files_are_flat_and_little_endian(tmp_path):
    """Other programs read these bytes without this module."""
    write(tmp_path)
    assert (tmp_path / "00000.tokens").read_bytes() == np.array([5, 6, 7, 8, 9, 1, 10, 11, 12, 99], "<u2").tobytes()
    assert (tmp_path / "00000.sentences").read_bytes() == np.array([0, 3, 4, 6, 8, 9, 10], "<i4").tobytes()
    assert (tmp_path / "00000.documents").read_bytes() == np.array([0, 2, 3, 6], "<i4").tobytes()


def test_meta_describes_the_shards(tmp_path):
    meta = json.loads((write(tmp_path) / "meta.json").read_text())
    shard = meta.pop("shards")[0]
    assert meta == {
        "format": 1,
        "vocabulary": VOCABULARY.fingerprint,
        "vocab_size": 100,
        "lower_case": True,
        "token_dtype": "uint16",
        "documents": 3,
        "sentences": 6,
        "tokens": 10,
        "unknown_tokens": 1,
    }
    assert {key: shard[key] for key in ("name", "documents", "sentences", "tokens")} == {
        "name": "00000",
        "documents": 3,
        "sentences": 6,
        "tokens": 10,
    }


def test_shards_are_cut_between_documents(tmp_path):
    documents = [[[5] * 100, [6] * 150]] * 20
    shards = ShardSet.open(write(tmp_path, documents, shard_megabytes=0.001))
    assert shards.names == [f"{n:05d}" for n in range(10)]
    assert list(read_documents(shards)) == documents
    assert shards.meta["tokens"] == 20 * 250


def test_token_counts(tmp_path):
    counts = ShardSet.open(write(tmp_path, [[[5, 5, 99]], [[5]]], shard_megabytes=1e-6)).token_counts()
    assert counts.dtype == np.int64 and counts.shape == (100,)
    assert counts[5] == 3 and counts[99] == 1 and counts.sum() == 4


def test_wide_ids_where_the_vocabulary_needs_them(tmp_path):
    assert token_dtype(65_536) == np.uint16
    vocabulary = Vocabulary(SPECIAL + [f"w{n}" for n in range(65_537 - 5)])
    shards = ShardSet.open(write(tmp_path, [[[65_536, 5]]], vocabulary), vocabulary)
    assert shards.meta["token_dtype"] == "uint32"
    assert list(read_documents(shards)) == [[[65_536, 5]]]


def test_no_documents_is_an_empty_set(tmp_path):
    shards = ShardSet.open(write(tmp_path, []))
    assert shards.names == [] and shards.token_counts().sum() == 0


@pytest.mark.parametrize("document", [[[100]], [[-1]], [[0.5]]])
def test_what_is_not_ids_is_refused(tmp_path, document):
    with pytest.raises(ValueError, match="^document: needs"):
        write(tmp_path, [document])


@pytest.mark.parametrize("kind", ["tokens", "sentences", "documents"])
def test_altered_truncated_and_missing_files_are_named(tmp_path, kind):
    path = write(tmp_path) / f"00000.{kind}"
    content = path.read_bytes()
    for damage in (content[:-1], bytes([content[0] ^ 1]) + content[1:]):
        path.write_bytes(damage)
        with pytest.raises(UserError, match=f"00000.{kind}: is not the file"):
            ShardSet.open(tmp_path)
        with pytest.raises(UserError, match=f"00000.{kind}: is not the file"):
            ShardSet.open(tmp_path, verify=False).read("00000")
    path.unlink()
    with pytest.raises(UserError, match=f"00000.{kind}: is missing"):
        ShardSet.open(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta.update(format=2),
        lambda meta: meta.update(tokens=11),
        lambda meta: meta.update(token_dtype="uint32"),
        lambda meta: meta.pop("lower_case"),
        lambda meta: meta["shards"][0].update(name="../00000"),
        lambda meta: meta["shards"][0].pop("sha256"),
        lambda meta: meta.update(shards=None),
        lambda meta: meta.update(vocab_size="100"),
    ],
)
def test_bad_meta_is_refused(tmp_path, change):
    path = write(tmp_path) / "meta.json"
    meta = json.loads(path.read_text())
    change(meta)
    path.write_text(json.dumps(meta))
    with pytest.raises(UserError, match="meta.json: "):
        ShardSet.open(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "[" * 100_000, "3", "\udcff"])
def test_meta_that_is_no_mapping_is_refused(tmp_path, content):
    (write(tmp_path) / "meta.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError, match="meta.json: "):
        ShardSet.open(tmp_path)


def test_an_unfinished_folder_is_refused(tmp_path):
    """An interrupted writer must leave nothing that opens."""
    with pytest.raises(RuntimeError), DocumentWriter(tmp_path, VOCABULARY, shard_megabytes=1e-6) as writer:
        writer.add([[5]])
        raise RuntimeError
    with pytest.raises(UserError, match="meta.json: is missing"):
        ShardSet.open(tmp_path)


def test_another_vocabulary_is_refused(tmp_path):
    write(tmp_path)
    swapped = Vocabulary(SPECIAL + [f"w{n}" for n in reversed(range(95))])
    larger = Vocabulary(VOCABULARY.tokens + ["more"])
    for vocabulary in (swapped, larger):
        with pytest.raises(UserError, match="needs the vocabulary it was made with, of 100 pieces"):
            ShardSet.open(tmp_path, vocabulary)


def test_finished_shards_are_not_overwritten(tmp_path):
    write(tmp_path)
    with pytest.raises(UserError, match="already has shards"):
        DocumentWriter(tmp_path, VOCABULARY)


@pytest.mark.parametrize("size", [0, -1, 1e6])
def test_impossible_shard_size(tmp_path, size):
    with pytest.raises(UserError, match="shard_megabytes"):
        DocumentWriter(tmp_path, VOCABULARY, shard_megabytes=size)


def tokenized(continuations=None):
    counts = [np.array([2, 0, 1], np.int32), np.array([0, 1, 0], np.int32)]
    return TokenizedDocuments(np.array([5, 6, 7, 8]), np.array([1, 2, 1], np.int32), *counts, continuations)


def test_documents_without_a_token_are_passed_over(tmp_path):
    with DocumentWriter(tmp_path, VOCABULARY) as writer:
        writer.add_documents(tokenized())
    assert list(read_documents(ShardSet.open(tmp_path))) == [[[5], [6, 7]], [[8]]]


def test_how_documents_come_in_batches_changes_nothing(tmp_path):
    documents = tokenized()
    batches = {"whole": [(0, 3)], "single": [(0, 1), (1, 2), (2, 3)], "two": [(0, 2), (2, 3)]}
    metas = []
    for name, parts in batches.items():
        with DocumentWriter(tmp_path / name, VOCABULARY, shard_megabytes=3e-5) as writer:
            for _ in range(5):
                for first, last in parts:
                    writer.add_documents(documents.part(first, last))
        metas.append(ShardSet.open(tmp_path / name).meta)
    assert len(metas[0]["shards"]) > 2 and metas[0] == metas[1] == metas[2]


def test_word_marks_are_a_file_of_their_own(tmp_path):
    marks = np.array([0, 0, 1, 0], np.uint8)
    with DocumentWriter(tmp_path, VOCABULARY, word_marks="jieba") as writer:
        writer.add_documents(tokenized(marks))
    shards = ShardSet.open(tmp_path)
    assert shards.has_word_marks and shards.meta["word_marks"] == "jieba"
    path = tmp_path / "00000.continuations"
    assert shards.path("00000", "continuations") == str(path)
    assert path.read_bytes() == marks.tobytes()
    path.write_bytes(b"\0\0\0\0")
    with pytest.raises(UserError, match="00000.continuations: is not the file"):
        ShardSet.open(tmp_path)
    with pytest.raises(UserError, match="00000.continuations: is not the file"):
        ShardSet.open(tmp_path, verify=False).token_counts()  # The start of a run checks no more than this.


def test_marks_are_there_only_where_they_were_asked_for(tmp_path):
    shards = ShardSet.open(write(tmp_path))
    assert not shards.has_word_marks and "word_marks" not in shards.meta
    with pytest.raises(ValueError, match="kind: needs one of"):
        shards.path("00000", "continuations")
    for word_marks, continuations in (("jieba", None), (None, np.zeros(4, np.uint8))):
        writer = DocumentWriter(tmp_path / "other", VOCABULARY, word_marks=word_marks)
        with pytest.raises(ValueError, match="needs continuations if word_marks was given"):
            writer.add_documents(tokenized(continuations))
