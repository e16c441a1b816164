"""A tiny model folder and tasks that it can learn in seconds."""

import json
import os

import numpy as np
import safetensors.numpy
from squad_file import paragraph, write_squad
from tiny import without_dropout, write_random

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = ("good", "fine", "nice", "bad", "dull", "poor", *(f"w{number}" for number in range(49)))
TELLING = WORDS[:6]
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *WORDS])


def write_tiny_bert(folder):
    """A pretrained model, as its folder; returns the path."""
    model = BertForPreTraining(without_dropout(max_position_embeddings=32, num_hidden_layers=1))
    return write_random(folder, model, VOCABULARY)


def spoil(folder):
    """Sets every weight of a model folder to the largest number: finite, but what they compute is not."""
    path = os.path.join(folder, "model.safetensors")
    weights = safetensors.numpy.load_file(path)
    safetensors.numpy.save_file(
        {name: np.full_like(weight, np.finfo(weight.dtype).max) for name, weight in weights.items()}, path
    )


def reviews(count, seed=0):
    """[(text, label)]: one word shows the label, anywhere among some that do not.

    Of two lengths, because the model is traced for each width of a batch.
    """
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        label = int(random.integers(2))
        telling = WORDS[3 * (1 - label) + int(random.integers(3))]
        others = [f"w{number}" for number in random.integers(0, 49, (3, 10)[random.integers(2)])]
        others.insert(int(random.integers(len(others) + 1)), telling)
        rows.append((" ".join(others), ("negative", "positive")[label]))
    return rows


def write_reviews(path, count, seed=0, name=lambda label: label):
    """A JSON-lines table with the columns `text` and `label`; returns the path."""
    rows = ({"text": text, "label": name(label)} for text, label in reviews(count, seed))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def write_columns(path, count, seed=0):
    """A word per line with its entity: the telling words are persons."""
    sentences = [text.split() for text, _ in reviews(count, seed)]
    lines = ["\n".join(f"{word} {'B-PER' if word in TELLING else 'O'}" for word in words) for words in sentences]
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")


def write_questions(path, count, seed=0):
    """Passages in which the answer is the one telling word."""
    found = []
    for number, (text, _) in enumerate(reviews(count, seed)):
        answer = next(word for word in text.split() if word in TELLING)
        found.append(paragraph(text, (str(number), "w1 w2", (answer, text.index(answer)))))
    write_squad(path, *found)


def write_sst2(folder, train=240, dev=48):
    """SST-2's folder in GLUE's form, below `folder`; returns `folder`."""
    home = folder / "SST-2"
    home.mkdir(parents=True)
    for split, count in (("train", train), ("dev", dev)):
        rows = [f"{text} \t{int(label == 'positive')}" for text, label in reviews(count, seed=len(split))]
        (home / f"{split}.tsv").write_text("\n".join(["sentence\tlabel", *rows]) + "\n", encoding="utf-8")
    rows = [f"{number}\t{text}" for number, (text, _) in enumerate(reviews(10, seed=9))]
    (home / "test.tsv").write_text("\n".join(["index\tsentence", *rows]) + "\n", encoding="utf-8")
    return str(folder)


def finetune_config(init, task="sst2", **overrides):
    values = {
        "task": task,
        "name": task,
        "init": init,
        "input": {"max_length": 24},
        "optimizer": {"learning_rate": 1e-2},
        "training": {"batch_size": 8, "epochs": 4, "log_every": 4},
    }
    return FinetuneConfig.from_mapping(values, overrides)
