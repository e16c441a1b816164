"""Opens an export and prints its answers, with tensorflow and tensorflow_text alone: run as a process of its own."""

import json
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.

folder, columns = sys.argv[1], json.loads(sys.argv[2])
try:
    import keras_bert  # noqa: F401

    sys.exit("keras_bert can be imported: this shows nothing.")
except ModuleNotFoundError:
    pass
signature = tf.saved_model.load(folder).signatures["serving_default"]
inputs = {name: tf.constant([bytes.fromhex(text) for text in texts]) for name, texts in columns.items()}
print(
    json.dumps(
        {name: output.numpy().tolist() for name, output in signature(**inputs).items() if output.dtype.is_floating}
    )
)
