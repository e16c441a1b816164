"""Masked LM on a task's own texts before fine-tuning."""

import numpy as np
import pytest
from corpus import write_corpus
from tiny import tiny_config

import keras_bert
from keras_bert.api.task_text import texts_of
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def rows_of(*rows):
    lengths = [len(row) for row in rows]
    return TokenRows(np.concatenate(rows), np.cumsum([0, *lengths]), np.array(lengths), extra={})


def test_texts_are_what_stands_between_special_tokens_each_once():
    """A pair as one text would teach that its second text follows from its first; a text of several rows, such as a
    question of many windows, would count several times."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, "a", "cat", "##s", "sat"])
    _, _, cls, sep, _ = range(5)
    rows = rows_of([cls, 5, 6, 7, sep, 8, sep], [cls, 5, 6, 7, sep], [cls, sep], [cls, 8, 5, sep, 0, 0])
    assert texts_of(rows, vocabulary) == ["a cats", "sat", "sat a"]


def test_random_weights_are_refused():
    """They would be trained for minutes, and then drawn anew."""
    settings = {"task": "text", "from_scratch": True, "training": {"pretrain_minutes": 1}}
    with pytest.raises(UserError, match="from_scratch: needs weights that are kept"):
        FinetuneConfig.from_mapping(settings)


@pytest.mark.slow
def test_fine_tuning_starts_from_what_the_texts_have_taught(tmp_path):
    """The encoder of MODEL as it was would mean that the minutes were spent for nothing."""
    with open(write_corpus(tmp_path / "corpus.txt", 60), encoding="utf-8") as stream:
        texts = [line.strip() for line in stream if line.strip()]
    letters = [chr(code) for code in range(33, 127)]
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)])
    config = tiny_config(vocab_size=len(vocabulary), max_position_embeddings=64)
    write_model_folder(str(tmp_path / "model"), BertForPreTraining(config), vocabulary, lower_case=True)
    rows = [{"text": text, "label": index % 2} for index, text in enumerate(texts)]
    data = {"train": rows, "dev": rows[:8], "text": "text", "label": "label", "max_length": 32}
    settings = {**data, "steps": 1, "pretrain_minutes": 0.15, "learning_rate": 1e-9, "output": tmp_path / "run"}
    run = keras_bert.finetune(tmp_path / "model", **settings)
    pretrained = keras_bert.Run(tmp_path / "run" / "task_text")
    assert pretrained.results["steps"] > 1
    names = ("model", "run", "run/task_text")
    short = [text[:20] for text in texts[:4]]
    before, after, between = (keras_bert.load(tmp_path / name).encode(short) for name in names)
    np.testing.assert_allclose(after, between, atol=1e-6)
    assert np.abs(between - before).max() > 1e-5
    assert keras_bert.finetune(tmp_path / "model", **settings).results == run.results
