"""EM and F1 to the last digit as the published scripts define them, written here in another way."""

import math
import random
import string

import pytest

from keras_bert.tasks.question_answering.scores import best_threshold, normalized, squad_v1_scores, squad_v2_scores

WORDS = (
    "a an the The cat cats' U.S. 3.5% 2,000 Ōsaka naïve “quoted” ¿qué? l'an a-the — … \u00a0 \u3000 İ ß 东京 ΣΑΣ".split(
        " "
    )
)
TEXTS = [
    "",
    " ",
    "the",
    "A.",
    "...",
    "a an the",
    "\u0301",
    "the\u00a0cat",
    "cat\tcat\n",
    "an.the",
    "the–cat",
    "THE CAT!",
]


def words_of(text):
    """The definition of an answer's words, character by character."""
    kept = "".join(character for character in text.lower() if character not in string.punctuation)
    # An article is a word that no letter, digit or underscore touches.
    is_word = [character.isalnum() or character == "_" for character in kept]
    pieces, begin = [], 0
    for place in range(1, len(kept) + 1):
        if place == len(kept) or is_word[place] != is_word[begin]:
            pieces.append(kept[begin:place])
            begin = place
    return "".join(" " if piece in ("a", "an", "the") else piece for piece in pieces).split()


def f1_of(prediction, reference):
    left, same = list(reference), 0
    for word in prediction:
        if word in left:
            left.remove(word)
            same += 1
    if same == 0:
        return 0
    precision, recall = 1.0 * same / len(prediction), 1.0 * same / len(reference)
    return (2 * precision * recall) / (precision + recall)


def random_text(rng):
    if rng.random() < 0.2:
        return rng.choice(TEXTS)
    return rng.choice([" ", "  ", "\n"]).join(rng.choice(WORDS) for _ in range(rng.randrange(1, 7)))


def random_questions(rng, count, may_be_empty):
    """(references, predictions); predictions resemble a reference more often than chance would have it."""
    references, predictions = {}, {}
    for number in range(count):
        texts = [random_text(rng) for _ in range(rng.randrange(0 if may_be_empty else 1, 4))]
        references[f"q{number}"] = texts
        predictions[f"q{number}"] = rng.choice([*texts, random_text(rng), ""])
    return references, predictions


def test_answers_are_compared_without_articles_punctuation_and_case():
    assert normalized(" The  U.S.' a-list,\u00a0an “Ōsaka” ") == "us alist “ōsaka”"
    assert normalized("theatre another bathe") == "theatre another bathe"


@pytest.mark.parametrize("seed", range(5))
def test_v1_is_the_published_definition(seed):
    rng = random.Random(seed)
    references, predictions = random_questions(rng, 400, may_be_empty=False)
    for name in rng.sample(list(predictions), 5):
        del predictions[name]  # Scores 0.
    exact = f1 = 0
    for name, texts in references.items():
        if name in predictions:
            prediction = words_of(predictions[name])
            exact += any(prediction == words_of(text) for text in texts)
            f1 += max(f1_of(prediction, words_of(text)) for text in texts)
    expected = {"exact_match": 100.0 * exact / 400, "f1": 100.0 * f1 / 400}
    assert all(5 < score < 95 for score in expected.values())
    assert squad_v1_scores(references, predictions) == expected


def v2_scores(references, predictions):
    exact, f1 = {}, {}
    for name, texts in references.items():
        prediction = words_of(predictions[name])
        known = [words_of(text) for text in texts if words_of(text)] or [[]]
        exact[name] = max(int(prediction == words) for words in known)
        f1[name] = max(
            f1_of(prediction, words) if prediction and words else int(prediction == words) for words in known
        )
    return {"exact": exact, "f1": f1}


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 1.5])
def test_v2_is_the_published_definition(threshold):
    """With questions without an answer, references that are nothing but articles, and a threshold."""
    rng = random.Random(8)
    references, predictions = random_questions(rng, 400, may_be_empty=True)
    odds = {name: rng.gauss(0, 2) for name in predictions}
    expected = {}
    for metric, scores in v2_scores(references, predictions).items():
        judged = {name: float(not references[name]) if odds[name] > threshold else scores[name] for name in scores}
        for prefix, kind in (("", (True, False)), ("HasAns_", (True,)), ("NoAns_", (False,))):
            kept = [judged[name] for name in judged if bool(references[name]) in kind]
            expected[prefix + metric] = 100.0 * sum(kept) / len(kept)
    received = squad_v2_scores(references, predictions, odds, threshold)
    assert {name: received[name] for name in expected} == expected
    assert squad_v2_scores(references, predictions).keys() == expected.keys()


def test_the_best_threshold_is_the_best_of_all_that_there_are():
    """All odds differ, so that a threshold can lie after every question."""
    rng = random.Random(3)
    references, predictions = random_questions(rng, 60, may_be_empty=True)
    # The script takes an answer of articles alone for wrong in one place and right in another.
    predictions = {name: text if words_of(text) else "" for name, text in predictions.items()}
    odds = {name: rng.gauss(0, 1) + (0 if texts else 1) for name, texts in references.items()}
    received = squad_v2_scores(references, predictions, odds)
    for metric in ("exact", "f1"):
        tried = {at: squad_v2_scores(references, predictions, odds, at)[metric] for at in [-math.inf, *odds.values()]}
        assert received[f"best_{metric}"] == pytest.approx(max(tried.values()), abs=1e-9)
        assert tried[received[f"best_{metric}_thresh"]] == pytest.approx(max(tried.values()), abs=1e-9)
    assert received["best_f1"] > received["f1"]


def test_where_answering_nothing_is_best_the_threshold_is_zero():
    scores, has_answer = {"a": 0.0, "b": 0}, {"a": True, "b": False}
    assert best_threshold({"a": "x", "b": "y"}, scores, {"a": -3.0, "b": 2.0}, has_answer) == (50.0, 0.0)


def test_v2_leaves_out_what_is_not_predicted():
    assert squad_v2_scores({"a": ["x"], "b": ["y"]}, {"a": "X"})["exact"] == 100.0
    assert squad_v1_scores({"a": ["x"], "b": ["y"]}, {"a": "X"})["exact_match"] == 50.0
