"""The plan of a pipeline's shards against the shards that one process writes. No Apache Beam is needed."""

import random
import shutil

import pytest

from keras_bert.core.errors import UserError
from keras_bert.core.files import join, make_folder
from keras_bert.core.whole_files import write_json
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.corpus.held_out import split_documents
from keras_bert.data.pipeline import pieces
from keras_bert.data.pipeline.duplicates import find_duplicates, in_buckets
from keras_bert.data.pipeline.pieces import divide, identities, one_per_file
from keras_bert.data.pipeline.prepare_work import PrepareWork
from keras_bert.data.shards.document_tokenizer import DocumentTokenizer
from keras_bert.data.shards.prepare import prepare
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.text.vocabulary import Vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = Vocabulary([*SPECIAL, ".", "the", "cat", "saw", *"0123456789", *(f"##{n}" for n in range(10))])
TOKENIZER = DocumentTokenizer(VOCABULARY, True)


def write_files(folder, count, seed=0):
    """Files of different lengths, with duplicates within and between them and documents without a token."""
    generator = random.Random(seed)
    for number in range(5):
        texts = [
            f"The cat saw {generator.randrange(count)}. The cat.\nThe cat." for _ in range(generator.randrange(count))
        ]
        texts += ["\u200b"] * (number == 2)
        generator.shuffle(texts)
        (folder / f"{number}.txt").write_text("\n\n".join(texts))
    return Corpus([str(folder)])


def run_without_a_runner(corpus, folder, share, megabytes):
    """The stages of the pipeline, one after the other, with everything in an order that a runner might give."""
    work = PrepareWork(TOKENIZER, corpus.config, str(folder), share, megabytes)
    for name in ("parts", "train", "validation"):
        make_folder(join(folder, name))
    shuffled = random.Random(1)
    todo = divide(corpus)
    work.parts.keep_for(identities(todo, corpus))
    shuffled.shuffle(todo)
    read = [(piece, work.tokenize(piece)) for piece in todo]
    buckets, again = {}, {}
    for piece, record in read:
        for hashes in work.hashes(piece, record["blocks"]):
            for bucket, part in in_buckets(hashes, 3):
                buckets.setdefault(bucket, []).append(part)
    for bucket in buckets.values():
        for name, places in find_duplicates(bucket):
            again.setdefault(name, []).append(places)
    for name, places in again.items():
        work.record_duplicates(name, places)
    shards = list(work.plan(one_per_file(read)))
    shuffled.shuffle(shards)
    work.finish([work.write_shard(shard) for shard in shards])
    for side, meta in work.parts.record("metas").items():
        write_json(join(folder, side, "meta.json"), meta)
    return work


def shard_files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for side in ("train", "validation")
        for path in (folder / side).iterdir()
    }


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(pieces, "BLOCK_CHARACTERS", 300)
    monkeypatch.setattr(pieces, "_BYTES_PER_READER", 1000)


@pytest.mark.parametrize(
    ("count", "share", "megabytes"),
    [(60, 0.3, 0.0007), (60, 0.02, 0.001), (60, 1e-9, 0.001), (60, 1 - 1e-9, 0.001), (9, 0.5, 16.0)],
)
def test_the_shards_are_those_of_one_process(tmp_path, small_blocks, count, share, megabytes):
    """The order of the first documents, the one that changes its side, and where shards end included."""
    (tmp_path / "text").mkdir()
    for seed in range(3):
        corpus = write_files(tmp_path / "text", count, seed)
        plain, piped = tmp_path / f"plain-{seed}", tmp_path / f"piped-{seed}"
        prepare(corpus.documents(), VOCABULARY, True, plain, share, megabytes, 1)
        work = run_without_a_runner(corpus, piped, share, megabytes)
        assert shard_files(piped) == shard_files(plain)
        assert max(piece.readers for piece in divide(corpus)) > 1 or count < 60
        assert len(shard_files(piped)) > 2 * (3 + 1) or count < 60
        assert work.parts.record("summary")["totals"]["duplicates"] > 0


def test_a_single_document_is_trained_on(tmp_path):
    (tmp_path / "a.txt").write_text("The cat.")
    run_without_a_runner(Corpus([str(tmp_path / "a.txt")]), tmp_path / "out", 0.999, 1.0)
    assert ShardSet.open(str(tmp_path / "out/train")).meta["documents"] == 1
    assert ShardSet.open(str(tmp_path / "out/validation")).names == []


def test_finished_parts_and_shards_are_not_made_again(tmp_path, small_blocks, monkeypatch):
    (tmp_path / "text").mkdir()
    corpus = write_files(tmp_path / "text", 60)
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 0.001)
    before = shard_files(tmp_path / "out")
    records = sorted((tmp_path / "out/parts").glob("*-0.json"))
    records[1].unlink()  # Its blocks are finished, but nothing says that they are all.
    part = sorted((tmp_path / "out/parts").glob("*-00001.npz"))[-1]
    part.unlink()
    (tmp_path / f"out/parts/{part.name[:6]}-1.json").unlink()
    tokenized = []
    call = DocumentTokenizer.__call__
    monkeypatch.setattr(DocumentTokenizer, "__call__", lambda self, texts: tokenized.append(texts) or call(self, texts))
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 0.001)
    assert len(tokenized) == 1 and shard_files(tmp_path / "out") == before


def test_a_file_more_or_less_costs_the_others_nothing(tmp_path, small_blocks, monkeypatch):
    """The parts of a file follow its place in the corpus; what depends on all files is made anew."""
    (tmp_path / "text").mkdir()
    corpus = write_files(tmp_path / "text", 60)
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 0.001)
    (tmp_path / "text/1.txt").unlink()
    (tmp_path / "text/0a.txt").write_text("The cat saw 7. The cat saw 8.")
    corpus, tokenized = Corpus([str(tmp_path / "text")]), []
    prepare(corpus.documents(), VOCABULARY, True, tmp_path / "plain", 0.3, 0.001, 1)
    call = DocumentTokenizer.__call__
    monkeypatch.setattr(DocumentTokenizer, "__call__", lambda self, texts: tokenized.extend(texts) or call(self, texts))
    shutil.rmtree(tmp_path / "out/train")
    shutil.rmtree(tmp_path / "out/validation")
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 0.001)
    assert tokenized == ["The cat saw 7. The cat saw 8."]
    assert shard_files(tmp_path / "out") == shard_files(tmp_path / "plain")


def test_a_damaged_part_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("The cat.\n\nThe cat saw 1.")
    corpus = Corpus([str(tmp_path / "a.txt")])
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 1.0)
    part = tmp_path / "out/parts/000000-00000.npz"
    content = part.read_bytes()
    for damaged in (content[:-30], b"", content.replace(b"token_counts", b"token_county")):
        part.write_bytes(damaged)
        with pytest.raises(UserError, match=r"000000-00000\.npz: is damaged .* Remove it and run the same command"):
            run_without_a_runner(corpus, tmp_path / "out", 0.3, 1.0)


def test_the_start_of_the_order_is_that_of_the_split(tmp_path):
    """Long stretches of one side, in which the split holds documents back."""
    (tmp_path / "text").mkdir()
    corpus = write_files(tmp_path / "text", 200, seed=5)
    kept = [text for text, held_out in split_documents(corpus.documents(), 1e-4) if not held_out]
    work = run_without_a_runner(corpus, tmp_path / "out", 1e-4, 16.0)
    tokens, sentences, documents = ShardSet.open(str(tmp_path / "out/train")).read("00000")
    first = [tokens[sentences[document] : sentences[document + 1]].tolist() for document in documents[:-1]]
    expected = [TOKENIZER([text]) for text in kept]
    assert first == [one.tokens[: one.sentence_lengths[0]].tolist() for one in expected if len(one.tokens)]
    assert work.parts.record("summary")["totals"]["empty"] == 1
