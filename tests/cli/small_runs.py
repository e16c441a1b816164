"""Small runs as a user gives them: pretrained for a few steps, fine-tuned, and served from strings by any tokenizer."""

import json
import subprocess
import sys

import numpy as np
import tensorflow as tf
from command_line import output_of, sets
from finetuning import reviews, write_columns, write_reviews

import keras_bert

TINY = sets(
    "model.hidden_size=32",
    "model.num_attention_heads=2",
    "model.intermediate_size=64",
    "model.max_position_embeddings=32",
)
STEPS = sets(
    "phases=[{share: 1.0, sequence_length: 16, batch_size: 8, max_predictions_per_seq: 4}]",
    "examples=[]",
    "optimizer.warmup_steps=0",
    "training.minutes=0",
    "training.jit_compile=false",
    "training.evaluation_examples=16",
)
SMALL = sets("input.max_length=32", "training.batch_size=8", "training.jit_compile=false")


def finetune(task, init, data, folder, *arguments):
    files = ("--train", data, "--dev", data, "--output", folder)
    output_of("finetune", "--task", task, "--init", init, *files, *SMALL, *arguments)


def assert_a_classifier_is_served(run, room):
    """In a process that knows nothing of keras_bert, so all of the tokenizer is in the export."""
    write_reviews(room / "train.jsonl", 48)
    finetune("text", run, room / "train.jsonl", room / "classifier", *sets("training.epochs=1"))
    output_of("export", "--model", room / "classifier", "--output", room / "served")
    texts = [text for text, _ in reviews(4)]
    expected = [answer.probabilities for answer in keras_bert.load(room / "classifier").predict(texts)]
    program = (
        "import json, sys, tensorflow as tf, tensorflow_text\n"
        "served = tf.saved_model.load(sys.argv[1]).signatures['serving_default']\n"
        "print(json.dumps(served(text=tf.constant(json.loads(sys.argv[2])))['probabilities'].numpy().tolist()))\n"
    )
    arguments = [sys.executable, "-c", program, str(room / "served" / "1"), json.dumps(texts)]
    told = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    received = json.loads(told.splitlines()[-1])
    labels = sorted(expected[0])
    np.testing.assert_allclose(received, [[row[label] for label in labels] for row in expected], rtol=1e-4, atol=1e-5)


def words_of_a_served_tagger(run, text, room):
    """The words that it finds in a text, by their offsets."""
    write_columns(room / "ner.txt", 32)
    finetune("ner", run, room / "ner.txt", room / "tagger", *sets("training.epochs=1"))
    output_of("export", "--model", room / "tagger", "--output", room / "served")
    served = tf.saved_model.load(str(room / "served" / "1")).signatures["serving_default"]
    outputs = {name: output.numpy() for name, output in served(text=tf.constant([text])).items()}
    return [text[start:end] for start, end in zip(outputs["starts"][0], outputs["ends"][0])]
