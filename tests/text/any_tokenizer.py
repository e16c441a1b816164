"""What tests of several tokenizers share: text to learn pieces from, and what is asked of each of them."""

import random

import keras
import numpy as np
import tensorflow as tf


def sentences(words, count=400):
    """Yields as many sentences of 3 to 12 of the words: the same ones every time."""
    rng = random.Random(0)
    for _ in range(count):
        yield " ".join(rng.choice(words) for _ in range(rng.randint(3, 12))) + "."


def assert_published(tokenizer, texts, published):
    """Ids and offsets of texts, str or bytes, are the `[ids, starts, ends]` that `published` gives for each str."""
    columns = [column.to_list() for column in tokenizer.tokenize_with_offsets(tf.constant(texts))]
    assert tokenizer(texts).to_list() == columns[0]
    for text, *received in zip(texts, *columns, strict=True):
        text = text.decode("utf-8", "ignore") if isinstance(text, bytes) else text
        assert received == published(text), text


def assert_works_anywhere(tokenizer, texts, folder):
    """Ids are the same in tf.data, in functions, in a saved model in the folder, and after a seed was set, which clears
    TensorFlow's kernels, and with them SentencePiece models that have no name."""
    expected = tokenizer(texts).to_list()
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(5).map(tokenizer, num_parallel_calls=4)
    assert [row for batch in dataset for row in batch.to_list()] == expected
    assert tf.function(tokenizer.tokenize)(tf.constant(texts)).to_list() == expected
    keras.utils.set_random_seed(0)
    assert tokenizer(texts).to_list() == expected
    module = tf.Module()
    module.tokenizer = tokenizer
    module.serve = tf.function(
        lambda texts: tokenizer(texts).to_tensor(), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    tf.saved_model.save(module, str(folder))
    served = tf.saved_model.load(str(folder)).serve(tf.constant(texts))
    np.testing.assert_array_equal(served, tokenizer(texts).to_tensor())


def assert_nothing_of_nothing(tokenizer):
    """A batch of nothing has no rows."""
    assert [column.to_list() for column in tokenizer.tokenize_with_offsets([])] == [[], [], []]
