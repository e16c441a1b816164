"""SuperGLUE in small, in the formats of its zip, and the same as TFDS's own code prepares it."""

import json
import re

import tensorflow_datasets as tfds
from tensorflow_datasets.text.super_glue import SuperGlue

# Some training examples of each task; they are also its dev examples and, without labels, its test examples.
EXAMPLES = {
    "BoolQ": [
        {"question": "is it w1", "passage": "Barq's -- w1 w2 .", "idx": 0, "label": True},
        {"question": "is it w2", "passage": "All of w3 .", "idx": 1, "label": False},
        {"question": "does w4", "passage": "It does w4 .", "idx": 2, "label": True},
    ],
    "CB": [
        {"premise": "B: I think w1 .", "hypothesis": "w1", "label": "entailment", "idx": 0},
        {"premise": "A: No w2 .", "hypothesis": "w2", "label": "contradiction", "idx": 1},
        {"premise": "A: If w3 ?", "hypothesis": "w3", "label": "neutral", "idx": 2},
    ],
    "COPA": [
        {"premise": "w1 .", "choice1": "w2 .", "choice2": "w3 .", "question": "cause", "label": 1, "idx": 0},
        {"premise": "w4 .", "choice1": "w5 .", "choice2": "w6 .", "question": "effect", "label": 0, "idx": 1},
    ],
    "MultiRC": [
        {
            "idx": 0,
            "version": 1.1,
            "passage": {
                "text": "w1 w2 . w3 w4 .",
                "questions": [
                    {
                        "question": "Who w1 ?",
                        "sentences_used": [0, 1],
                        "answers": [
                            {"text": "w2", "idx": 0, "label": 1},
                            {"text": "w5", "idx": 1, "label": 0},
                            {"text": "all of w2", "idx": 2, "label": 1},
                        ],
                        "idx": 0,
                    },
                    {
                        "question": "Why w3 ?",
                        "answers": [{"text": "w6", "idx": 3, "label": 0}, {"text": "w4", "idx": 4, "label": 1}],
                        "idx": 1,
                    },
                ],
            },
        },
        {
            "idx": 1,
            "version": 1.1,
            "passage": {
                "text": "w7 .",
                "questions": [{"question": "What ?", "answers": [{"text": "w7", "idx": 5, "label": 1}], "idx": 2}],
            },
        },
    ],
    "ReCoRD": [
        {
            "source": "Daily mail",
            "idx": 0,
            "passage": {
                "text": "Ann Lee met Bob .\n@highlight\nBob left Ann",
                "entities": [
                    {"start": 0, "end": 6},
                    {"start": 12, "end": 14},
                    {"start": 29, "end": 31},
                    {"start": 38, "end": 40},
                ],
            },
            "qas": [
                {
                    "query": "@placeholder was met by Bob",
                    "answers": [{"start": 0, "end": 6, "text": "Ann Lee"}, {"start": 38, "end": 40, "text": "Ann"}],
                    "idx": 0,
                },
                {"query": "He is @placeholder .", "answers": [{"start": 12, "end": 14, "text": "Bob"}], "idx": 1},
            ],
        },
        {
            "source": "CNN",
            "idx": 1,
            "passage": {"text": "w1 w2", "entities": [{"start": 0, "end": 1}, {"start": 3, "end": 4}]},
            "qas": [{"query": "w3 @placeholder", "answers": [{"start": 3, "end": 4, "text": "w2"}], "idx": 2}],
        },
    ],
    "RTE": [
        {"premise": "w1 w2 .", "hypothesis": "w1 .", "label": "entailment", "idx": 0},
        {"premise": "w3 w4 .", "hypothesis": "w5 .", "label": "not_entailment", "idx": 1},
    ],
    "WiC": [
        {
            "word": "w1",
            "sentence1": "A w1 , w2 .",
            "sentence2": "w3 w1",
            "idx": 0,
            "label": True,
            "start1": 2,
            "start2": 3,
            "end1": 4,
            "end2": 5,
            "version": 1.1,
        },
        {
            "word": "w4",
            "sentence1": "w4s",
            "sentence2": "é w4.",
            "idx": 1,
            "label": False,
            "start1": 0,
            "start2": 2,
            "end1": 3,
            "end2": 4,
            "version": 1.1,
        },
    ],
    "WSC": [
        {
            "text": "The w1 saw w2, because he ran.",
            "target": {"span1_index": 0, "span1_text": "the w1", "span2_index": 5, "span2_text": "he"},
            "idx": 0,
            "label": True,
        },
        {
            "text": "w3 saw w4, because (he) ran.",
            "target": {"span1_index": 2, "span1_text": "w4", "span2_index": 4, "span2_text": "he"},
            "idx": 1,
            "label": False,
        },
    ],
}
DIAGNOSTICS = {
    "AX-b": [
        {"sentence1": "w1 w2 .", "sentence2": "w1 .", "idx": 0, "label": "entailment", "logic": "Negation"},
        {"sentence1": "w3 .", "sentence2": "w4 .", "idx": 1, "label": "not_entailment"},
        {"sentence1": "w5 .", "sentence2": "w6 .", "idx": 2, "label": "entailment"},
    ],
    "AX-g": [
        {"hypothesis": "w2 .", "pair_id": 9, "premise": "w1 he .", "idx": 0, "label": "not_entailment"},
        {"hypothesis": "w2 .", "pair_id": 9, "premise": "w1 she .", "idx": 1, "label": "not_entailment"},
        {"hypothesis": "w4 .", "pair_id": 7, "premise": "w3 he .", "idx": 2, "label": "entailment"},
        {"hypothesis": "w4 .", "pair_id": 7, "premise": "w3 she .", "idx": 3, "label": "entailment"},
    ],
}
CONFIGS = {"AX-b": "axb", "AX-g": "axg", "WSC": "wsc.fixed"}


def write_lines(path, rows):
    """JSON lines; returns the path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def hidden(value):
    """A row without its labels and answers, wherever in it they are."""
    if isinstance(value, dict):
        return {name: hidden(item) for name, item in value.items() if not _is_hidden(name, item)}
    return [hidden(item) for item in value] if isinstance(value, list) else value


def _is_hidden(name, item):
    """A label, or ReCoRD's answers, which have places. MultiRC's have none, and only their labels are hidden."""
    return name == "label" or name == "answers" and "start" in item[0]


def write_superglue(folder):
    """Writes every task's folder below `folder` (a `pathlib.Path`); returns the folder as text."""
    for name, rows in EXAMPLES.items():
        for split, written in (("train", rows), ("val", rows), ("test", hidden(rows))):
            write_lines(folder / name / f"{split}.jsonl", written)
    for name, rows in DIAGNOSTICS.items():
        write_lines(folder / name / f"{name}.jsonl", rows)
    return str(folder)


def prepare_superglue(folder, data_dir, name):
    """Prepares the task of a folder as TFDS's own code does, below `data_dir`."""
    config = CONFIGS.get(name, name.lower())
    builder = SuperGlue(config=config, data_dir=str(data_dir / "unused"))
    files = {"train": "train", "validation": "val", "test": "test"}
    if re.match("AX-", name):
        files = {"test": name}
    examples = {
        split: list(builder._generate_examples(f"{folder}/{name}/{file}.jsonl", split)) for split, file in files.items()
    }
    tfds.dataset_builders.store_as_tfds_dataset(
        name="super_glue",
        config=config,
        version="1.0.2",
        data_dir=str(data_dir),
        features=builder.info.features,
        split_datasets=examples,
    )
    return str(data_dir)
