"""Exact match and F1 of SQuAD 1.1 and 2.0, in per cent, as the official scripts count them.

An answer is compared in lower case, without ASCII punctuation and the articles a, an and the, and with single spaces;
F1 is that of the two bags of words. Of several references the best counts, for each of the two metrics by itself.
Source: Rajpurkar et al. 2016, section 6.1, and 2018; evaluate-v1.1.py and evaluate-v2.0.py. The order of additions is
theirs, and so is which scores are whole numbers (Python's `sum` treats those otherwise), for the last digit's sake.
"""

import re
import string
from collections import Counter

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(text):
    """An answer as it is compared."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def squad_v1_scores(references, predictions):
    """`{"exact_match", "f1"}` by evaluate-v1.1.py: a question without prediction scores 0.

    Args:
        references: `{id: [text, …]}`, in the data's order, one text or more.
        predictions: `{id: text}`.
    """
    exact = f1 = 0.0
    for name, texts in references.items():
        if name in predictions:
            prediction = normalized(predictions[name])
            exact += max(prediction == normalized(text) for text in texts)
            f1 += max(_f1(prediction.split(), normalized(text).split()) for text in texts)
    return {"exact_match": 100.0 * exact / len(references), "f1": 100.0 * f1 / len(references)}


def squad_v2_scores(references, predictions, null_odds=None, threshold=0.0):
    """The figures of evaluate-v2.0.py without its counts: a question without prediction is not counted.

    `exact` and `f1`, the same of questions with and without answer (`HasAns_`, `NoAns_`) where there are such, and
    with `null_odds` the best that any threshold reaches (`best_exact`, `best_exact_thresh`, `best_f1`,
    `best_f1_thresh`).

    Args:
        references: `{id: [text, …]}`, in the data's order, no text where there is no answer.
        predictions: `{id: text}`, "" for no answer.
        null_odds: `{id: number}`: above the threshold "" takes the prediction's place.
        threshold: see `null_odds`; without them it has no meaning.
    """
    has_answer = {name: bool(texts) for name, texts in references.items()}
    predicted = [name for name in references if name in predictions]
    exact, f1 = {}, {}
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


def best_threshold(predictions, scores, null_odds, has_answer):
    """(the best mean score in per cent, the threshold that reaches it), as evaluate-v2.0.py's `find_best_thresh`.

    Questions are answered one after the other, the least likely to be unanswerable first. The threshold is 0.0 where
    answering none is best.
    """
    best = score = sum(not answerable for answerable in has_answer.values())
    at = 0.0
    for name in sorted(null_odds, key=null_odds.get):
        if name not in scores:
            continue
        score += scores[name] if has_answer[name] else -bool(predictions[name])
        if score > best:
            best, at = score, null_odds[name]
    return 100.0 * best / len(scores), at


def _f1(prediction, reference):
    """Of two lists of words; 0 where they share none, also where both are empty (evaluate-v1.1.py)."""
    same = sum((Counter(prediction) & Counter(reference)).values())
    if not same:
        return 0
    precision, recall = same / len(prediction), same / len(reference)
    return (2 * precision * recall) / (precision + recall)


def _f1_or_both_empty(prediction, reference):
    """As `_f1`, but two empty answers agree (evaluate-v2.0.py)."""
    return int(prediction == reference) if not prediction or not reference else _f1(prediction, reference)
