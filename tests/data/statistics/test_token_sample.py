"""What is counted in a text of any size."""

import numpy as np
from corpus import write_corpus
from random_shards import numbered_vocabulary, write_shards

from keras_bert.data.batches.raw_lines import RawLines
from keras_bert.tasks.pretraining.batch_sources import sample_of_lines, sample_of_shards
from keras_bert.text.vocabulary_learning import learn_vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer


def test_shards_are_sampled_evenly(tmp_path):
    shards = write_shards(str(tmp_path / "shards"), numbered_vocabulary(100), 60)
    whole = [shards.read(name)[0] for name in shards.names]
    total = sum(map(len, whole))
    part = list(sample_of_shards(shards, total // 2))
    assert abs(sum(map(len, part)) - total // 2) <= len(whole) == len(part)
    beginnings = {tokens[:20].tobytes(): tokens for tokens in whole}
    for tokens in part:
        np.testing.assert_array_equal(tokens, beginnings[tokens[:20].tobytes()][: len(tokens)])
    assert sum(map(len, sample_of_shards(shards, 10 * total))) == total


def test_of_very_many_shards_some_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert.data.shards.shard_files._MOST_SAMPLED", 3)
    shards = write_shards(str(tmp_path / "shards"), numbered_vocabulary(100), 60)
    read = []
    monkeypatch.setattr(type(shards), "read", lambda self, name: read.append(name) or (np.zeros(5, "uint16"),))
    assert len(list(sample_of_shards(shards, 10**9))) == 3
    assert sorted(read) == [shards.names[0], shards.names[round((len(shards.names) - 1) / 2)], shards.names[-1]]


def test_lines_are_tokenized_from_the_first_on(tmp_path):
    corpus = write_corpus(tmp_path / "text.txt", count=200)
    lines = RawLines([corpus], 0.1)
    texts = list(lines.training_texts())
    tokenizer = WordPieceTokenizer(learn_vocabulary(texts, 120))
    expected = tokenizer(texts).values.numpy()
    np.testing.assert_array_equal(np.concatenate(list(sample_of_lines(lines, tokenizer, 10**9))), expected)
    np.testing.assert_array_equal(np.concatenate(list(sample_of_lines(lines, tokenizer, 77))), expected[:77])
