"""Opens exports and prints their answers, with tensorflow and tensorflow_text alone: runs in a process of its own."""

import json
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.

try:
    import keras_bert  # noqa: F401

    sys.exit("keras_bert can be imported: this shows nothing.")
except ModuleNotFoundError:
    pass
with open(sys.argv[1], encoding="utf-8") as stream:
    asked = json.load(stream)
answers = {}
for kind, (folder, columns) in asked.items():
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    inputs = {name: tf.constant([bytes.fromhex(text) for text in texts]) for name, texts in columns.items()}
    outputs = {name: output.numpy() for name, output in signature(**inputs).items() if output.dtype.is_floating}
    answers[kind] = {name: output.tolist() for name, output in outputs.items()}
print(json.dumps(answers))
