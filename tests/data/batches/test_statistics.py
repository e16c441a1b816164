"""The paper's shares in batches made from text: 15% predicted, 80/10/10, half of the pairs random."""

import itertools

import numpy as np
import pytest
from corpus import documents
from random_shards import DocumentWriter

from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.data.batches.shard_batches import ShardBatches
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.text.sentences import split_sentences
from keras_bert.text.vocabulary_learning import learn_vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    texts = list(documents(3000))
    tokenizer = WordPieceTokenizer(learn_vocabulary(texts[:200], 90, True))
    sentences = [split_sentences(text) for text in texts]
    pieces = iter(tokenizer([sentence for document in sentences for sentence in document]).to_list())
    folder = tmp_path_factory.mktemp("data") / "shards"
    with DocumentWriter(folder, tokenizer.vocabulary) as writer:
        for document in sentences:
            writer.add(list(itertools.islice(pieces, len(document))))
    return tokenizer.vocabulary, ShardSet.open(folder)


@pytest.mark.parametrize(("pair", "unit"), [("nsp", "token"), ("none", "word")])
def test_shares_in_the_batches_of_an_epoch(shards, tmp_path, pair, unit):
    vocabulary, shards = shards
    phase = PhaseConfig(sequence_length=128, batch_size=64, max_predictions_per_seq=20)
    objective, masking = ObjectiveConfig(pair=pair), MaskingConfig(unit=unit)
    source = ShardBatches(shards, vocabulary, phase, objective, masking, 1, tmp_path / "plans")
    text = predicted = masked = kept = random_next = rows = 0
    for batch in source.epoch(0).as_numpy_iterator():
        weights = batch["masked_lm_weights"] > 0
        there = np.take_along_axis(batch["input_word_ids"], batch["masked_lm_positions"], axis=1)[weights]
        text += batch["input_mask"].sum()
        predicted += weights.sum()
        masked += np.count_nonzero(there == vocabulary.mask_id)
        kept += np.count_nonzero(there == batch["masked_lm_ids"][weights])
        rows += len(weights)
        random_next += batch["next_sentence_labels"].sum() if pair == "nsp" else 0
    assert predicted > 9_000
    # Rows of 128 and more than 133 tokens would be capped at 20; whole words leave some of the budget unused.
    assert predicted / text == pytest.approx(0.15, abs=0.005)
    # A random token is [MASK], or the original one, once in len(vocabulary) draws.
    assert masked / predicted == pytest.approx(0.8 + 0.1 / len(vocabulary), abs=0.012)
    assert kept / predicted == pytest.approx(0.1 + 0.1 / len(vocabulary), abs=0.01)
    if pair == "nsp":
        assert random_next / rows == pytest.approx(0.5, abs=0.01)
