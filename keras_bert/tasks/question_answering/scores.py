"""Exact match and F1 of SQuAD 1.1, SQuAD 2.0 and CMRC 2018, in per cent, as computed by the official scripts.

SQuAD's answers are compared in lower case, without ASCII punctuation and the articles a, an and the, and with single
spaces; F1 is that of the two bags of words. Of several references, the best one counts, separately for each metric.
Source: Rajpurkar et al. 2016, section 6.1, and 2018; evaluate-v1.1.py and evaluate-v2.0.py. To match the scripts' last
digit, scores are added in the same order, and are integers where theirs are: Python's `sum` adds them differently.

CMRC's answers (cmrc2018_evaluate.py) are compared in lower case, without some Chinese and English punctuation marks. F1
is over segments, which are single Chinese characters and the words of the text between them, and counts the longest run
of segments that two answers share. The script first splits text that is not Chinese into sentences, by a trained model
that NLTK does not ship; here NLTK splits it into words directly. The results differ if an answer has two sentences that
end in ASCII full stops.
"""

import difflib
import functools
import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(text: str) -> str:
    """An answer as it is compared."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def squad_v1_scores(references: Mapping[str, Sequence[str]], predictions: Mapping[str, str]) -> dict[str, float]:
    """`{"exact_match", "f1"}`, as from evaluate-v1.1.py: a question without a prediction scores 0.

    Args:
        references: `{id: texts}`, in the data's order, at least one each.
        predictions: `{id: text}`.
    """
    exact = f1 = 0.0
    for name, texts in references.items():
        if name in predictions:
            prediction = normalized(predictions[name])
            exact += max(prediction == normalized(text) for text in texts)
            f1 += max(_f1(prediction.split(), normalized(text).split()) for text in texts)
    return {"exact_match": 100.0 * exact / len(references), "f1": 100.0 * f1 / len(references)}


def squad_v2_scores(
    references: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float] | None = None,
    threshold: float = 0.0,
) -> dict[str, float]:
    """The figures of evaluate-v2.0.py except its counts; questions without a prediction are ignored.

    These are `exact` and `f1`, for all questions and for those with and without an answer (`HasAns_`, `NoAns_`), if
    there are any; and, given `null_odds`, the best that any threshold reaches (`best_exact`, `best_exact_thresh`,
    `best_f1`, `best_f1_thresh`).

    Args:
        references: `{id: texts}`, in the data's order; no texts if there is no answer.
        predictions: `{id: text}`, "" for no answer.
        null_odds: `{id: number}`; if it is larger than the threshold, the prediction is replaced by "".
        threshold: see `null_odds`.
    """
    has_answer = {name: bool(texts) for name, texts in references.items()}
    predicted = [name for name in references if name in predictions]
    exact: dict[str, float] = {}
    f1: dict[str, float] = {}
    for name in predicted:
        prediction = normalized(predictions[name])
        texts = [text for text in map(normalized, references[name]) if text] or [""]
        exact[name] = max(int(prediction == text) for text in texts)
        f1[name] = max(_f1_or_both_empty(prediction.split(), text.split()) for text in texts)
    kinds = {"": predicted}
    kinds["HasAns_"] = [name for name in predicted if has_answer[name]]
    kinds["NoAns_"] = [name for name in predicted if not has_answer[name]]
    figures = {}
    for prefix, names in kinds.items():
        for metric, scores in (("exact", exact), ("f1", f1)):
            judged = [
                float(not has_answer[name]) if null_odds and null_odds[name] > threshold else scores[name]
                for name in names
            ]
            if judged:
                figures[prefix + metric] = 100.0 * sum(judged) / len(judged)
    if null_odds:
        for metric, scores in (("exact", exact), ("f1", f1)):
            best, at = best_threshold(predictions, scores, null_odds, has_answer)
            figures |= {f"best_{metric}": best, f"best_{metric}_thresh": at}
    return figures


def best_threshold(
    predictions: Mapping[str, str],
    scores: Mapping[str, float],
    null_odds: Mapping[str, float],
    has_answer: Mapping[str, bool],
) -> tuple[float, float]:
    """(the best mean score in per cent, the threshold that reaches it), as in evaluate-v2.0.py's `find_best_thresh`.

    Questions are answered one by one, the least likely to be unanswerable first. The threshold is 0.0 if answering none
    is best.
    """
    best: float = sum(not answerable for answerable in has_answer.values())
    score, at = best, 0.0
    for name in sorted(null_odds, key=null_odds.__getitem__):
        if name not in scores:
            continue
        score += scores[name] if has_answer[name] else -bool(predictions[name])
        if score > best:
            best, at = score, null_odds[name]
    return 100.0 * best / len(scores), at


def _f1(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of two lists of words; 0 if they share none, even if both are empty (evaluate-v1.1.py)."""
    return _f1_of(sum((Counter(prediction) & Counter(reference)).values()), prediction, reference)


def _f1_of(same: int, prediction: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of two lists that share this many items."""
    if not same:
        return 0
    precision, recall = same / len(prediction), same / len(reference)
    return (2 * precision * recall) / (precision + recall)


def _f1_or_both_empty(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Like `_f1`, but two empty answers agree (evaluate-v2.0.py)."""
    return int(prediction == reference) if not prediction or not reference else _f1(prediction, reference)


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
            f1 += max(_longest_run_f1(prediction_segments, segments(text)) for text in texts)
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
    return difflib.SequenceMatcher(None, first, second, autojunk=False).find_longest_match().size


def _words(text: str) -> list[str]:
    return _tokenizer().tokenize(text) if text.strip() else []


@functools.cache
def _tokenizer() -> Any:
    from nltk.tokenize.destructive import NLTKWordTokenizer  # Takes seconds, and only this task needs it.

    return NLTKWordTokenizer()


def _longest_run_f1(prediction: Sequence[str], reference: Sequence[str]) -> float:
    return _f1_of(longest_run(reference, prediction), prediction, reference)
