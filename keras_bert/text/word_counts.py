"""Counts the words of texts, split as by the tokenizer."""

from collections import Counter
from collections.abc import Iterable

from keras_bert.text.basic_tokenizer import BasicTokenizer
from keras_bert.text.divided_texts import utf8_batches


def count_words(texts: Iterable[str], lower_case: bool) -> Counter[str]:
    """Counts the words in `texts`, streamed once; memory grows with the number of different words."""
    normalize = BasicTokenizer(lower_case).normalize
    counts: Counter[str] = Counter()
    for batch in utf8_batches(texts):
        for text in normalize(batch).numpy():
            counts.update(text.decode("utf-8").split(" "))
    del counts[""]  # From empty texts.
    return counts
