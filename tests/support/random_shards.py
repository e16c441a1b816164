"""Shards of random documents, sources of them, and what they should read."""

import numpy as np
import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.data.batches.plans import Plans
from keras_bert.data.batches.shard_batches import ShardBatches
from keras_bert.data.shards.shard_files import ShardSet, ShardWriter
from keras_bert.data.shards.shard_format import TokenizedDocuments, new_meta
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

LENGTH, PREDICTIONS = 32, 5


def numbered_vocabulary(size):
    return Vocabulary([*SPECIAL_TOKENS, *(f"w{number}" for number in range(size - 5))])


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def random_offsets(documents, sentences, tokens, seed):
    """The ends of sentences and of documents, from the number of documents and the ranges of lengths within them."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(*sentences, documents)
    return offsets(rng.integers(*tokens, counts.sum())), offsets(counts)


class DocumentWriter(ShardWriter):
    """A `ShardWriter` of documents as lists of sentences, which are lists of ids."""

    def __init__(self, folder, vocabulary, shard_megabytes=16.0, **marks):
        meta = new_meta(vocabulary, True, **{"word_marks": None, "phrase_marks": None, **marks})
        super().__init__(folder, meta, vocabulary.unk_id, shard_megabytes)

    def add(self, document):
        lengths = np.array([len(sentence) for sentence in document], np.int32)
        tokens = np.concatenate([np.asarray(sentence) for sentence in document])
        self.add_documents(TokenizedDocuments(tokens, lengths, np.array([lengths.size]), np.zeros(1, np.int32)))


def write_shards(folder, vocabulary, documents, shard_megabytes=0.005):
    """Shards of unequal sizes; documents have random tokens, so hardly any two rows are alike."""
    rng = np.random.default_rng(0)
    with DocumentWriter(folder, vocabulary, shard_megabytes) as writer:
        for _ in range(documents):
            lengths = rng.integers(1, 20, rng.integers(1, 60))
            writer.add([rng.integers(5, len(vocabulary), length) for length in lengths])
    return ShardSet.open(folder, vocabulary)


def open_source(shards, vocabulary, folder, batch_size=8, seed=3, shards_per_group=3, objective=None, **masking):
    objective = objective or ObjectiveConfig()
    phase = PhaseConfig(sequence_length=LENGTH, batch_size=batch_size, max_predictions_per_seq=PREDICTIONS)
    return ShardBatches(shards, vocabulary, phase, objective, MaskingConfig(**masking), seed, folder, shards_per_group)


def take(dataset):
    return list(dataset.as_numpy_iterator())


def batch_spec(dataset):
    """{name: (shape, type)}."""
    return {name: (tuple(value.shape), value.dtype.name) for name, value in dataset.element_spec.items()}


def expected_spec(batch, predictions, *labels):
    """The same for batches with the masked LM's and other labels."""
    inputs = dict.fromkeys(("input_word_ids", "input_mask", "input_type_ids"), ((batch, LENGTH), "int32"))
    masks = dict.fromkeys(("masked_lm_positions", "masked_lm_ids"), ((batch, predictions), "int32"))
    weights = {"masked_lm_weights": ((batch, predictions), "float32"), "example_weights": ((batch,), "float32")}
    return {**inputs, **masks, **weights, **dict.fromkeys(labels, ((batch,), "int32"))}


def restored(batch):
    """The ids before masking."""
    ids = batch["input_word_ids"].copy()
    rows = np.arange(len(ids))[:, None]
    is_prediction = batch["masked_lm_weights"] > 0
    positions = np.where(is_prediction, batch["masked_lm_positions"], 0)
    ids[rows, positions] = np.where(is_prediction, batch["masked_lm_ids"], ids[:, :1])
    return ids


def examples(batches, masked=False):
    """Every real row of the batches as bytes: ids, segments, mask and label, before or after masking."""
    rows = []
    for batch in take(batches) if isinstance(batches, tf.data.Dataset) else batches:
        ids = batch["input_word_ids"] if masked else restored(batch)
        columns = [ids, batch["input_type_ids"], batch["input_mask"], batch["next_sentence_labels"][:, None]]
        rows += [row.tobytes() for row in np.concatenate(columns, axis=1)[batch["example_weights"] > 0]]
    return rows


def planned_examples(shards, vocabulary, plans_folder, epoch=0, seed=3):
    """The same rows, put together in plain Python from the plan files and the shards."""
    plans = Plans(plans_folder, shards, LENGTH, ObjectiveConfig(), seed)
    plans.prepare(epoch)
    rows = []
    for number, name in enumerate(shards.names):
        tokens, _, _ = shards.read(name)
        for a_start, a_end, b_start, b_end, label in np.load(plans.path(number, epoch), allow_pickle=False):
            a, b = tokens[a_start:a_end].tolist(), tokens[b_start:b_end].tolist()
            ids = [vocabulary.cls_id, *a, vocabulary.sep_id, *b, vocabulary.sep_id]
            types = [0] * (len(a) + 2) + [1] * (len(b) + 1)
            padding = [0] * (LENGTH - len(ids))
            row = [*ids, *padding, *types, *padding, *[1] * len(ids), *padding, label]
            rows.append(np.array(row, np.int32).tobytes())
    return rows
