"""SQuAD's format in small, and a vocabulary that its texts are made of."""

import json

from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_MARKS = ".,?!'()“”-。，《》"
_IDEOGRAPHS = "由光荣和开发的战国无双是哪个公司"
VOCABULARY = Vocabulary(
    [*SPECIAL_TOKENS, *_LETTERS, *(f"##{letter}" for letter in _LETTERS), *_MARKS, *_IDEOGRAPHS]
    + ["the", "cafe", "was", "founded", "in", "by", "##ed", "who", "paris"]
)

CAFE = "The “Café Noir” was founded in 1921 by José Núñez-Ortega, in Paris."
GAME = "《战国无双3》是由光荣和ω-force开发的。"


def squad_tokenizer(lower_case=True):
    return WordPieceTokenizer(VOCABULARY, lower_case=lower_case)


def question(name, text, passage=None, *answers, **fields):
    """One of `qas`; each answer is a text of the passage, or (text, start) as it stands."""
    listed = [answer if isinstance(answer, tuple) else (answer, passage.index(answer)) for answer in answers]
    return {
        "id": name,
        "question": text,
        "answers": [{"text": answer, "answer_start": start} for answer, start in listed],
        **fields,
    }


def paragraph(passage, *questions):
    """`questions`: the arguments of `question` without the passage: (id, text, answer, …)."""
    return {"context": passage, "qas": [question(name, text, passage, *answers) for name, text, *answers in questions]}


def write_squad(path, *paragraphs, version="1.1"):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"version": version, "data": [{"title": "t", "paragraphs": list(paragraphs)}]}
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)
