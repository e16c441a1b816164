"""The plan of a pipeline's shards, compared with the shards of one process. No Apache Beam is needed."""

import random

import numpy as np
import pytest
from prepared import VOCABULARY, shard_settings

from keras_bert.core.errors import UserError
from keras_bert.core.files import join, make_folder
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.corpus.held_out import SIDES
from keras_bert.data.pipeline import pieces
from keras_bert.data.pipeline.parts import DROPPED, PartFiles
from keras_bert.data.pipeline.pieces import divide, one_per_file
from keras_bert.data.pipeline.prepare import PrepareWork, finish
from keras_bert.data.pipeline.repeated import find_repeated, in_buckets
from keras_bert.data.shards.document_tokenizer import DocumentTokenizer
from keras_bert.data.shards.prepare import prepare


def write_files(folder, count, seed=0):
    """Files of different lengths, with duplicates within and between them, and documents without tokens."""
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
    """The pipeline's stages, one after the other, with everything in an order that a runner might choose."""
    work = PrepareWork(shard_settings(VOCABULARY, True, share, megabytes), corpus.config, str(folder))
    sides = [join(folder, side) for side in SIDES]
    shuffled = random.Random(1)
    pieces = divide(corpus)
    work.parts.keep_for([piece.key for piece in one_per_file(pieces)], sides)
    for side in sides:
        make_folder(side)
    buckets, again = {}, {}
    for piece in shuffled.sample(pieces, len(pieces)):
        for hashes in work.tokenize(piece):
            for bucket, part in in_buckets(3, hashes):
                buckets.setdefault(bucket, []).append(part)
    for bucket in buckets.items():
        for name, places in find_repeated(bucket):
            again.setdefault(name, []).append(places)
    for name, places in again.items():
        work.parts.write_places(DROPPED, name, places)
    shards = list(work.plan([(piece.name, piece.key) for piece in one_per_file(pieces)]))
    shuffled.shuffle(shards)
    for shard in shards:
        work.write_shard(shard)
    return finish(corpus, work, pieces)


def shard_files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for side in ("train", "validation")
        for path in (folder / side).iterdir()
    }


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(pieces, "BLOCK_CHARACTERS", 300)
    monkeypatch.setattr(pieces, "_BYTES_PER_READER", 1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "share", "megabytes"),
    [(60, 0.3, 0.0007), (60, 0.02, 0.001), (60, 1e-9, 0.001), (60, 1 - 1e-9, 0.001), (9, 0.5, 16.0)],
)
def test_the_shards_are_those_of_one_process(tmp_path, count, share, megabytes):
    """Including the order of the first documents, the one that changes sides, and where shards end."""
    (tmp_path / "text").mkdir()
    for seed in range(3):
        corpus = write_files(tmp_path / "text", count, seed)
        plain, piped = tmp_path / f"plain-{seed}", tmp_path / f"piped-{seed}"
        plain_report = prepare(corpus, shard_settings(VOCABULARY, True, share, megabytes), plain, 1)
        report = run_without_a_runner(corpus, piped, share, megabytes)
        assert shard_files(piped) == shard_files(plain) and report == plain_report
        assert max(piece.readers for piece in divide(corpus)) > 1 or count < 60
        assert len(shard_files(piped)) > 2 * (3 + 1) or count < 60
        assert report.dropped["duplicate"] > 0


def test_finished_parts_and_shards_are_not_made_again(tmp_path, monkeypatch):
    (tmp_path / "text").mkdir()
    corpus = write_files(tmp_path / "text", 60)
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 0.001)
    before = shard_files(tmp_path / "out")
    parts = tmp_path / "out/parts"
    keys = [piece.key for piece in divide(corpus) if piece.reader == 1]
    (parts / f"{keys[0]}-0.json").unlink()  # Its blocks are finished, but nothing says that there are no others.
    (parts / f"{keys[-1]}-00001.npz").unlink()
    (parts / f"{keys[-1]}-1.json").unlink()
    tokenized = []
    call = DocumentTokenizer.__call__
    monkeypatch.setattr(DocumentTokenizer, "__call__", lambda self, texts: tokenized.append(texts) or call(self, texts))
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 0.001)
    assert len(tokenized) == 1 and shard_files(tmp_path / "out") == before


def test_a_file_more_or_less_costs_the_others_nothing(tmp_path, monkeypatch):
    """A file's parts follow its place in the corpus; only what depends on all files is made again."""
    (tmp_path / "text").mkdir()
    corpus = write_files(tmp_path / "text", 60)
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 0.001)
    (tmp_path / "text/1.txt").unlink()
    (tmp_path / "text/0a.txt").write_text("The cat saw 7. The cat saw 8.")
    corpus, tokenized = Corpus([str(tmp_path / "text")]), []
    prepare(corpus, shard_settings(VOCABULARY, True, 0.3, 0.001), tmp_path / "plain", 1)
    call = DocumentTokenizer.__call__
    monkeypatch.setattr(DocumentTokenizer, "__call__", lambda self, texts: tokenized.extend(texts) or call(self, texts))
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 0.001)
    assert tokenized == ["The cat saw 7. The cat saw 8."]
    assert shard_files(tmp_path / "out") == shard_files(tmp_path / "plain")


def test_a_file_rewritten_to_the_same_size_is_read_again(tmp_path):
    """Its old parts, and everything that depends on all files, would be taken for those of the new text."""
    (tmp_path / "text").mkdir()
    corpus = write_files(tmp_path / "text", 60)
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 0.001)
    keys, compared = (
        {piece.path: piece.key for piece in divide(corpus, compares_all=compares_all)} for compares_all in (False, True)
    )
    path = tmp_path / "text/1.txt"
    path.write_text(path.read_text().replace("cat saw", "saw cat"))
    assert {piece.path for piece in divide(corpus) if piece.key != keys[piece.path]} == {str(path)}
    assert all(piece.key != compared[piece.path] for piece in divide(corpus, compares_all=True))
    prepare(corpus, shard_settings(VOCABULARY, True, 0.3, 0.001), tmp_path / "plain", 1)
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 0.001)
    assert shard_files(tmp_path / "out") == shard_files(tmp_path / "plain")


def test_damaged_places_are_named(tmp_path):
    """NumPy raises other exceptions for a garbled header than for missing bytes."""
    parts, name = PartFiles(str(tmp_path)), ("0" * 16, 0)
    parts.write_places(DROPPED, name, [np.arange(5)])
    [path] = (tmp_path / "parts").iterdir()
    content = path.read_bytes()
    for damaged in (b"", content[:50], content[:-8], content.replace(b"(", b"{", 1), content.replace(b":", b"(")):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=rf"{path.name}: is damaged .* Remove it and run the same command"):
            parts.places(DROPPED, name)


@pytest.mark.parametrize("content", ["{", "[" * 100_000])
def test_a_damaged_record_is_named(tmp_path, content):
    parts = PartFiles(str(tmp_path))
    parts.write_record("places", [1])
    [path] = (tmp_path / "parts").iterdir()
    path.write_text(content)
    with pytest.raises(UserError, match=rf"{path.name}: is damaged. Remove it and run the same command"):
        parts.record("places")


def test_a_damaged_part_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("The cat.\n\nThe cat saw 1.")
    corpus = Corpus([str(tmp_path / "a.txt")])
    run_without_a_runner(corpus, tmp_path / "out", 0.3, 1.0)
    [part] = (tmp_path / "out/parts").glob("*.npz")
    content = part.read_bytes()
    for damaged in (content[:-30], b"", content.replace(b"token_counts", b"token_county")):
        part.write_bytes(damaged)
        with pytest.raises(UserError, match=r"-00000\.npz: is damaged .* Remove it and run the same command"):
            run_without_a_runner(corpus, tmp_path / "out", 0.3, 1.0)
