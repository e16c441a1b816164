"""Folders of TensorFlow Datasets, written by TFDS itself."""

import numpy as np
import tensorflow_datasets as tfds

from keras_bert.tasks.classification.benchmarks import GLUE

TEXTS = {name: task.tfds.texts or task.texts for name, task in GLUE.items()}


def prepare(data_dir, name, rows, labels=None):
    """`rows`: split to a list of (texts, label). Returns the folder that the data set is in."""
    score = tfds.features.Scalar(np.float32)
    features = {text: tfds.features.Text() for text in TEXTS[name]}
    features |= {"label": tfds.features.ClassLabel(names=labels) if labels else score, "idx": np.int32}
    examples = {
        split: [
            (number, {**dict(zip(TEXTS[name], texts)), "label": label, "idx": number})
            for number, (texts, label) in enumerate(pairs)
        ]
        for split, pairs in rows.items()
    }
    builder = tfds.dataset_builders.store_as_tfds_dataset(
        name="glue",
        config=name,
        version="2.0.0",
        data_dir=str(data_dir),
        features=tfds.features.FeaturesDict(features),
        split_datasets=examples,
    )
    return str(builder.data_path)
