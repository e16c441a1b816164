"""BART's language model head."""

import keras

from keras_bert.layers.tied_decoder import TiedDecoder


@keras.saving.register_keras_serializable(package="keras_bert")
class BartTokenHead(TiedDecoder):
    """The word embeddings, and a bias [1, vocab] as in files, which is not trained, as in transformers."""

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        self.bias = self.add_weight(
            name="bias", shape=(1, self.vocab_size), initializer="zeros", trainable=False, autocast=False
        )
