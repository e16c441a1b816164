"""The function from raw strings to answers: what `export` writes, TensorFlow Serving runs and `predict` calls."""

import tensorflow as tf

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.config.classification import ClassificationConfig
from keras_bert.config.reading import ReadingConfig
from keras_bert.export.classification import classification_signatures
from keras_bert.export.encoding import encoder_signatures
from keras_bert.export.masked_lm import masked_lm_signatures
from keras_bert.export.network import FLOAT32, Network
from keras_bert.export.reader import Reader
from keras_bert.models.pretraining import BertForPreTraining

DEFAULT = "serving_default"
TOP_K = 5


class ServingFunction:
    """A model's signatures, traced.

    Called with one list of texts for each of `columns`, it gives `{output: array}` of `serving_default`, each with a
    row a text: what the saved model answers, without saving it.

    Attributes:
        signatures: `{name: tf.types.experimental.ConcreteFunction}`.
        inputs: `{name: TensorSpecs}`, what each takes.
        columns: names of the inputs of `serving_default`.
        reader: the `Reader`.
    """

    def __init__(self, signatures, reader, network):
        self.signatures = {name: signature.traced() for name, signature in signatures.items()}
        self.inputs = {name: signature.inputs for name, signature in signatures.items()}
        self.columns = tuple(spec.name for spec in self.inputs[DEFAULT])
        self.reader = reader
        self._network = network

    def __call__(self, *columns):
        return self.answer(DEFAULT, *columns)

    def answer(self, signature, *values):
        """`{output: array}` of a signature, for arrays or lists in the order of `inputs[signature]`."""
        specs = self.inputs[signature]
        tensors = (tf.constant(value, spec.dtype) for value, spec in zip(values, specs, strict=True))
        return {name: output.numpy() for name, output in self.signatures[signature](*tensors).items()}

    def outputs(self, signature):
        """Names of what a signature gives."""
        return sorted(self.signatures[signature].structured_outputs)

    def tracked(self):
        """What `tf.saved_model.save` is given with the signatures."""
        return self._network.tracked(self.signatures.values())


def serving_function(bert, dtype=FLOAT32, jit=False, top_k=TOP_K, encoder_only=False):
    """The `ServingFunction` of a model.

    Args:
        bert: what `keras_bert.load` gives.
        dtype: what weights are stored in, one of `network.DTYPES`; all is computed in float32.
        jit: whether XLA compiles the network.
        top_k: how many pieces a masked LM gives for each [MASK].
        encoder_only: whether the vectors are wanted, whatever head the model has.

    Raises:
        UserError: config.json says of texts what cannot be exported.
    """
    folder = open_model_folder(bert.path)
    positions = bert.config.max_position_embeddings
    reading = ReadingConfig.from_fields(folder.other_fields, positions, f"{bert.path}/config.json")
    reader = Reader(bert.config, bert.tokenizer, reading, few_lengths=jit)
    network = Network(bert.model, dtype, jit)
    if encoder_only:
        signatures = encoder_signatures(reader, network)
    elif isinstance(bert.head, ClassificationConfig):
        signatures = classification_signatures(bert.head, reader, network)
    elif isinstance(bert.model, BertForPreTraining):
        signatures = masked_lm_signatures(reader, network, top_k)
    else:
        signatures = encoder_signatures(reader, network)
    return ServingFunction(signatures, reader, network)
