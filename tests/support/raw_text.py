"""Files of raw text, and sources that read them during a run."""

import functools

import numpy as np
from corpus import documents
from random_shards import LENGTH, restored

from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.data.batches.raw_lines import RawLines
from keras_bert.data.batches.text_batches import TextBatches
from keras_bert.text.vocabulary_learning import learn_vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

PREDICTIONS = 6
TEXTS = [list(documents(30, seed)) for seed in range(6)]  # Of each file.


@functools.cache
def text_tokenizer():
    return WordPieceTokenizer(learn_vocabulary((text for file in TEXTS for text in file), 90, True))


def write_texts(folder):
    for number, file in enumerate(TEXTS):
        (folder / f"{number}.txt").write_text("\n\n".join(file), encoding="utf-8")
    return str(folder)


def text_source(names, pair="none", batch_size=8, seed=3, validation=False, share=0.1, packing="full", **masking):
    phase = PhaseConfig(sequence_length=LENGTH, batch_size=batch_size, max_predictions_per_seq=PREDICTIONS)
    objective = ObjectiveConfig(pair=pair, packing=packing)
    lines = RawLines(names, share)
    return TextBatches(lines, text_tokenizer(), phase, objective, MaskingConfig(**masking), seed, validation)


def real_rows(batches, masked=False):
    """The real rows as tuples, before or after masking."""
    ids = [batch["input_word_ids"] if masked else restored(batch) for batch in batches]
    return [tuple(row) for batch, rows in zip(batches, ids) for row in rows[batch["example_weights"] > 0].tolist()]


def equal(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one)
