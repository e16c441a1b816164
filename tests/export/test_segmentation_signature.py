"""A segmenter's signature on strings: words with their places, blanks kept, and the labels of training."""

import numpy as np
from hostile_texts import HOSTILE, random_hostile

from keras_bert.tasks.tagging.crf_decoding import best_labels

TEXTS = ["The cat's mat", "", " 中文 thecat\u3000sat\u2028x ", "a", " \t "]


def test_words_are_parts_of_the_text_and_no_blank_is_lost(served):
    _, function = served("segment")
    texts = [*TEXTS, *(text.decode("utf-8", "ignore") for text in (*HOSTILE, *random_hostile(40, seed=2)))]
    answers = function(texts)
    for row, text in enumerate(texts):
        count = answers["num_words"][row]
        starts, ends = answers["starts"][row, :count], answers["ends"][row, :count]
        words = [word.decode("utf-8") for word in answers["words"][row, :count]]
        assert answers["segmented"][row].decode("utf-8") == " ".join(words)
        assert ["".join(text[start:end].split()) for start, end in zip(starts, ends)] == words
        assert "".join(words) == "".join(text.split())
        # Blanks of the text are between words.
        assert all(not any(character.isspace() for character in text[start:end]) for start, end in zip(starts, ends))
        assert set(answers["words"][row, count:].tolist()) <= {b""}
        assert (answers["scores"][row, :count] > 0).all() and (answers["scores"][row] < 1 + 1e-5).all()


def test_words_begin_where_the_labels_of_training_say(served):
    bert, function = served("segment")
    text = "thecatsatonthemat"
    answer = function([text])
    given = function.answer("words", [list(text)])
    labels = [label.decode() for label in given["labels"][0]]
    begins = [place for place, label in enumerate(labels) if label in "BS"]
    assert answer["starts"][0].tolist() == begins and len(begins) > 1
    row = [bert.tokenizer.vocabulary.ids[character] for character in ("[CLS]", *text, "[SEP]")]
    ids = np.array([row], "int32")
    logits = bert.model({"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0})["logits"]
    best = best_labels(logits.numpy()[0, 1:-1], np.array([0, len(text)]), bert.model.crf.scores())
    assert ["BIES"[number] for number in best] == labels
