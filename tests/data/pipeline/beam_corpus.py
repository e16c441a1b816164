"""A data set that TFDS makes with Apache Beam, as it makes C4 and Wikipedia."""

import tensorflow_datasets as tfds
from corpus import documents


class BeamCorpus(tfds.core.GeneratorBasedBuilder):
    """Two splits of generated text."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict({"text": tfds.features.Text()}))

    def _split_generators(self, manager):
        return {"train": self._generate_examples(60), "test": self._generate_examples(10)}

    def _generate_examples(self, count):
        beam = tfds.core.lazy_imports.apache_beam
        return beam.Create(list(enumerate(documents(count)))) | f"Examples {count}" >> beam.Map(
            lambda example: (example[0], {"text": example[1]})
        )
