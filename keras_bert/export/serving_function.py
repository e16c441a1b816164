"""The function from raw strings to answers: what `export` writes, TensorFlow Serving runs and `predict` calls."""

import numpy as np
import tensorflow as tf

from keras_bert.config.reading import ReadingConfig
from keras_bert.export.encoding import encoder_signatures
from keras_bert.export.masked_lm import masked_lm_signatures
from keras_bert.export.network import FLOAT32, Network
from keras_bert.export.reader import Reader
from keras_bert.models.finite_outputs import require_numbers
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.task_kinds import kind_of_head

DEFAULT = "serving_default"
TOP_K = N_BEST = 5
_AT_ONCE = 32


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

    def answers_by_length(self, *columns, signature=DEFAULT):
        """A list with `{output: array}` of each row, computed beside rows of about its length.

        Args:
            columns: a list of n str, or of n lists of str, for each input.
            signature: its name.

        Raises:
            UserError: an output is no finite number.
        """
        columns = [list(column) for column in columns]
        lengths = [sum(_length(value) for value in row) for row in zip(*columns, strict=True)]
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        found, numbers = [None] * len(order), []
        for first in range(0, len(order), _AT_ONCE):
            batch = order[first : first + _AT_ONCE]
            outputs = self.answer(signature, *(_batch([column[index] for index in batch]) for column in columns))
            floats = [values.reshape(len(batch), -1) for values in outputs.values() if values.dtype.kind == "f"]
            numbers.extend(np.concatenate(floats, axis=1))
            for place, index in enumerate(batch):
                found[index] = {name: values[place] for name, values in outputs.items()}
        require_numbers(numbers)
        return found

    def outputs(self, signature):
        """Names of what a signature gives."""
        return sorted(self.signatures[signature].structured_outputs)

    def tracked(self):
        """What `tf.saved_model.save` is given with the signatures."""
        return self._network.tracked(self.signatures.values())


def serving_function(bert, dtype=FLOAT32, jit=False, top_k=TOP_K, n_best=N_BEST, encoder_only=False):
    """The `ServingFunction` of a model.

    Args:
        bert: what `keras_bert.load` gives.
        dtype: what weights are stored in, one of `network.DTYPES`; all is computed in float32.
        jit: whether XLA compiles the network for one row, see `Network`.
        top_k: how many pieces a masked LM gives for each [MASK].
        n_best: how many answers a model gives to a question about a passage.
        encoder_only: whether the vectors are wanted, whatever head the model has.

    Raises:
        UserError: config.json says of texts what cannot be exported.
    """
    positions, path = bert.config.max_position_embeddings, f"{bert.path}/config.json"
    reading = ReadingConfig.from_fields(bert.folder.other_fields, positions, path)
    reader = Reader(bert.config, bert.tokenizer, reading)
    network = Network(bert.model, dtype, jit)
    head = None if encoder_only else bert.head
    if head:
        signatures = kind_of_head(head).signatures(bert, reader, network, n_best)
    elif not encoder_only and isinstance(bert.model, BertForPreTraining):
        signatures = masked_lm_signatures(reader, network, top_k)
    else:
        signatures = encoder_signatures(reader, network)
    return ServingFunction(signatures, reader, network)


def _length(value):
    """Characters of a text, or of a list of texts."""
    return len(value) if isinstance(value, str) else sum(map(len, value))


def _batch(values):
    """Texts as they are; lists of texts filled up with "" to the longest."""
    if all(isinstance(value, str) for value in values):
        return values
    most = max(map(len, values))
    return [[*value, *[""] * (most - len(value))] for value in values]
