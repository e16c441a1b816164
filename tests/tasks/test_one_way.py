"""The one way from examples to answers in training, `evaluate` and `predict`, against the export's own."""

import json
import os

import numpy as np
import pytest
from answers import assert_same_answers, exported_answers, predicted_answers
from served import RERANKER, write_served
from squad_file import paragraph, write_squad

import keras_bert
from keras_bert.export.serving_function import serving_function
from keras_bert.tasks.few_shot.task import FewShotConfig
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig
from keras_bert.tasks.span_pairs.task import SpanPairConfig

WORDS = ("the", "cat", "sat", "mat", ",", "中", "zebra", "on")
TEXT = {"task": "text", "texts": ["text"], "label": "label"}
PAIR = {"task": "text", "texts": ["a", "b"], "label": "label"}
READER = {"scoring": "words", "stride": 7, "max_question_length": 9, "max_answer_length": 3}
OTHER_HEADS = {
    "vectors": SentenceVectorsConfig(("score",)),
    "spans": SpanPairConfig(("False", "True")),
    "rerank": RERANKER,
    "few_shot": FewShotConfig(("no", "maybe", "yes")),
}
# {name: (kind of model, what its config.json says of its task, file ending)}
KINDS = {
    "single": ("single", TEXT, "jsonl"),
    "windows": ("single", {**TEXT, "long": "windows", "stride": 4}, "jsonl"),
    "pair": ("pair", PAIR, "jsonl"),
    "multi": ("multi", TEXT, "jsonl"),
    "regression": ("regression", TEXT, "jsonl"),
    "rerank": ("rerank", {**PAIR, "task": "rerank", "pair": True}, "jsonl"),
    "rerank_windows": ("rerank", {**PAIR, "task": "rerank", "pair": True, "long": "windows", "stride": 4}, "jsonl"),
    "tagging": ("tagging", {"task": "ner"}, "txt"),
    "features": ("features", {"task": "tokens"}, "txt"),
    "crf": ("crf", {"task": "ner"}, "txt"),
    "segment": ("segment", {"task": "segment"}, "txt"),
    "choice": ("choice", {"task": "choice"}, "jsonl"),
    "squad": ("answering", {"task": "squad", "unanswerable": False, **READER}, "json"),
    "squad_v2": ("answering", {"task": "squad_v2", "unanswerable": True, **READER}, "json"),
    "vectors": ("vectors", {**PAIR, "task": "pairs-contrastive", "label": "label", "pair": False}, "jsonl"),
    "spans": ("spans", {"task": "wic", "pair": True}, "jsonl"),
    "few_shot": ("few_shot", {**TEXT, "task": "few-shot"}, "jsonl"),
    "few_shot_pair": ("few_shot", {**PAIR, "task": "few-shot", "pair": True}, "jsonl"),
}


def write_examples(path, name, count=40):
    """Labelled examples, some of them too long for a row."""
    random = np.random.default_rng(0)

    def text(most=25):
        return " ".join(random.choice(WORDS, random.integers(1, most)))

    labels = {"multi": ["a"], "regression": 1.5, "vectors": 1.0, "spans": False, "rerank": 0.5, "rerank_windows": 1}
    if name in ("tagging", "features", "crf"):
        label = "N" if name == "features" else "O"
        content = "\n".join("".join(f"{word} {label}\n" for word in text().split()) for _ in range(count))
    elif name == "segment":
        content = "".join(f"{text(8).replace(' ', '')}\n" for _ in range(count))
    elif name.startswith("squad"):
        passages = (text() for _ in range(count))
        write_squad(path, *(paragraph(one, (str(n), text(8), one.split()[0])) for n, one in enumerate(passages)))
        return
    else:
        rows = []
        for number in range(count):
            row = {"label": labels.get(name, "yes")}
            if name == "choice":
                choices = [text(5) for _ in range(random.integers(2, 5))]
                row = {"context": text(), "question": text(5), "choices": choices, "label": 1}
            elif name == "spans":
                row |= {"sentence1": "the cat", "sentence2": f"the sat {text()}", "idx": number}
                row |= {"start1": 4, "end1": 7, "start2": 4, "end2": 7}
            else:
                row |= (
                    {"a": text(), "b": text()}
                    if name in ("pair", "vectors", "rerank", "rerank_windows", "few_shot_pair")
                    else {"text": text()}
                )
            rows.append(json.dumps(row) + "\n")
        content = "".join(rows)
    path.write_text(content, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_the_answers_are_those_of_evaluate_and_of_the_export(name, tmp_path, monkeypatch):
    kind, said, ending = KINDS[name]
    path = write_served(tmp_path / "model", kind, OTHER_HEADS.get(kind), **{"max_length": 24, **said})
    file = str(tmp_path / f"examples.{ending}")
    write_examples(tmp_path / f"examples.{ending}", name)
    data = {"texts": said["texts"]} if name == "vectors" else {}
    asked = FinetunedModel(path, data, asked=file)
    for module in ("data.windows", "tasks.tagging.tagged_words"):  # Each window is traced for its own shape.
        monkeypatch.setattr(f"keras_bert.{module}._CHARACTERS_AT_ONCE", os.path.getsize(file) // 4)
    assert len(list(asked.problem.windows("input"))) > 1
    answers = predicted_answers(asked, "input")
    function = serving_function(keras_bert.load(path), n_best=20)
    assert_same_answers(asked.problem, answers, exported_answers(asked.problem, "input", function))
    scored = FinetunedModel(path, {**data, "dev": file})
    assert_same_answers(asked.problem, answers, scored.evaluate.answers("dev")[0])
