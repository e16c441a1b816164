"""How often each word occurs in texts, the words being the tokenizer's own."""

import itertools
from collections import Counter

from keras_bert.text.basic_tokenizer import BasicTokenizer

_BATCH_SIZE = 1024


def count_words(texts, lower_case):
    """A `Counter` of the words in an iterable of str, read once; memory grows with the number of different words."""
    normalize = BasicTokenizer(lower_case).normalize
    counts = Counter()
    texts = iter(texts)
    while batch := [text.encode("utf-8", "ignore") for text in itertools.islice(texts, _BATCH_SIZE)]:
        for text in normalize(batch).numpy():
            counts.update(text.decode("utf-8").split(" "))
    del counts[""]  # The word of an empty text.
    return counts
