"""Counts the words of texts, split as by the tokenizer."""

import itertools
from collections import Counter
from collections.abc import Iterable

from keras_bert.text.basic_tokenizer import BasicTokenizer

_BATCH_SIZE = 1024


def count_words(texts: Iterable[str], lower_case: bool) -> Counter[str]:
    """Counts the words in `texts`, streamed once; memory grows with the number of different words."""
    normalize = BasicTokenizer(lower_case).normalize
    counts: Counter[str] = Counter()
    texts = iter(texts)
    while batch := [text.encode("utf-8", "ignore") for text in itertools.islice(texts, _BATCH_SIZE)]:
        for text in normalize(batch).numpy():
            counts.update(text.decode("utf-8").split(" "))
    del counts[""]  # From empty texts.
    return counts
