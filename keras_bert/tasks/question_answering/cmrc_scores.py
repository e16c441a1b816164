"""Exact match and F1 of CMRC 2018, in per cent, as computed by its script (cmrc2018_evaluate.py).

Both ignore some Chinese and English punctuation marks. F1 is over segments, which are single Chinese characters and the
words of the text between them, and counts the longest run of segments that two answers share.

The script first splits text that is not Chinese into sentences, by a trained model that NLTK does not ship; here NLTK
splits it into words directly. The results differ if an answer has two sentences that end in ASCII full stops.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

_MARKS = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_FIRST, _LAST = "\u4e00", "\u9fa5"


def cmrc_scores(references: Mapping[str, Sequence[str]], predictions: Mapping[str, str]) -> dict[str, float]:
    """`{"f1", "exact_match", "average"}`; a question without a prediction scores 0.

    Args:
        references: `{id: texts}`, at least one each.
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


def without_marks(text: str) -> str:
    """An answer as compared for exact match."""
    return "".join(character for character in text.lower().strip() if character not in _MARKS)


def segments(text: str) -> list[str]:
    """An answer as compared for F1: Chinese characters and words."""
    found: list[str] = []
    other: list[str] = []
    for character in without_marks(text):
        if _FIRST <= character <= _LAST:
            found += _words("".join(other))
            found.append(character)
            other.clear()
        else:
            other.append(character)
    return found + _words("".join(other))


def longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest run of items that occurs in both lists."""
    best, above = 0, [0] * (len(second) + 1)
    for item in first:
        row = [0] * (len(second) + 1)
        for place, other in enumerate(second):
            if item == other:
                row[place + 1] = above[place] + 1
        best, above = max(best, *row), row
    return best


def _words(text: str) -> list[str]:
    return _tokenizer().tokenize(text) if text.strip() else []


@functools.cache
def _tokenizer() -> Any:
    from nltk.tokenize.destructive import NLTKWordTokenizer  # Takes seconds, and only this task needs it.

    return NLTKWordTokenizer()


def _f1(prediction: Sequence[str], reference: Sequence[str]) -> float:
    run = longest_run(reference, prediction)
    if not run:
        return 0.0
    precision, recall = run / len(prediction), run / len(reference)
    return (2 * precision * recall) / (precision + recall)
