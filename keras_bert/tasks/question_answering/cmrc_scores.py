"""Exact match and F1 of CMRC 2018, in per cent, as its script counts them (cmrc2018_evaluate.py).

Both drop some marks of Chinese and English punctuation. F1 is over segments, which are single Chinese characters and
the words of what stands between them, and counts the longest run of segments that two answers share.

The script splits what is not Chinese into sentences first, by a trained model that NLTK does not ship; here it goes
into NLTK's words as it stands. That differs where an answer holds two sentences that end in ASCII full stops.
"""

import functools

_MARKS = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_FIRST, _LAST = "\u4e00", "\u9fa5"


def cmrc_scores(references, predictions):
    """`{"f1", "exact_match", "average"}`; a question without prediction scores 0.

    Args:
        references: `{id: [text, …]}`, one text or more.
        predictions: `{id: text}`.
    """
    exact = f1 = 0.0
    for name, texts in references.items():
        if name in predictions:
            prediction, prediction_segments = without_marks(predictions[name]), segments(predictions[name])
            exact += any(prediction == without_marks(text) for text in texts)
            f1 += max(_f1(prediction_segments, segments(text)) for text in texts)
    figures = {"f1": 100.0 * f1 / len(references), "exact_match": 100.0 * exact / len(references)}
    return {**figures, "average": (figures["exact_match"] + figures["f1"]) * 0.5}


def without_marks(text):
    """An answer as exact match compares it."""
    return "".join(character for character in text.lower().strip() if character not in _MARKS)


def segments(text):
    """An answer as F1 compares it: list of Chinese characters and of words."""
    found, other = [], []
    for character in without_marks(text):
        if _FIRST <= character <= _LAST:
            found += _words("".join(other))
            found.append(character)
            other.clear()
        else:
            other.append(character)
    return found + _words("".join(other))


def longest_run(first, second):
    """Length of the longest run of items that stands in both lists."""
    best, above = 0, [0] * (len(second) + 1)
    for item in first:
        row = [0] * (len(second) + 1)
        for place, other in enumerate(second):
            if item == other:
                row[place + 1] = above[place] + 1
        best, above = max(best, *row), row
    return best


def _words(text):
    return _tokenizer().tokenize(text) if text.strip() else []


@functools.cache
def _tokenizer():
    from nltk.tokenize.destructive import NLTKWordTokenizer  # Takes seconds, and only this task needs it.

    return NLTKWordTokenizer()


def _f1(prediction, reference):
    run = longest_run(reference, prediction)
    if not run:
        return 0.0
    precision, recall = run / len(prediction), run / len(reference)
    return (2 * precision * recall) / (precision + recall)
