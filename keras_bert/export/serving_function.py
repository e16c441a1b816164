"""The function from raw strings to answers: `export` writes it, TensorFlow Serving runs it."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert.export.language_models import encoder_signatures, masked_lm_signatures, next_token_signatures
from keras_bert.export.network import FLOAT32, Network
from keras_bert.export.signature import Signature, TextInputs
from keras_bert.inference.finite_outputs import require_numbers
from keras_bert.inference.loading import LoadedModel
from keras_bert.models.bert.config import MASKED, NEXT
from keras_bert.tasks.kind import kind_of_head

DEFAULT = "serving_default"
TOP_K = N_BEST = 5
_AT_ONCE = 32


class ServingFunction:
    """A model's signatures, traced.

    Call it with a list of texts for each of `columns`. It returns what the exported model would, without exporting it:
    the outputs `{name: array}` of `serving_default`, one row per text.

    Attributes:
        signatures: the traced functions, by name.
        inputs: the inputs of each signature, in order.
        warm_up: `Signature.warm_up` of each signature.
        columns: the names of the inputs of `serving_default`.
        text_inputs: converts the inputs to those of the encoder.
    """

    signatures: dict[str, tf.types.experimental.ConcreteFunction]
    inputs: dict[str, tuple[tf.TensorSpec, ...]]
    columns: tuple[str, ...]
    text_inputs: TextInputs

    def __init__(self, signatures: Mapping[str, Signature], text_inputs: TextInputs, network: Network) -> None:
        self.signatures = {name: signature.traced() for name, signature in signatures.items()}
        self.inputs = {name: signature.inputs for name, signature in signatures.items()}
        self.warm_up = {name: signature.warm_up for name, signature in signatures.items()}
        self.columns = tuple(spec.name for spec in self.inputs[DEFAULT])
        self.text_inputs = text_inputs
        self._network = network

    def __call__(self, *columns: Sequence) -> dict[str, np.ndarray]:
        return self.answer(DEFAULT, *columns)

    def answer(self, signature: str, *values: Sequence | np.ndarray) -> dict[str, np.ndarray]:
        """The outputs of a signature for arrays or lists in the order of `inputs[signature]`.

        Lists of texts, such as `choices`, need not have the same length; shorter ones are padded with "".
        """
        return {name: output.numpy() for name, output in self._call(signature, values).items()}

    def _call(self, signature: str, values: Sequence[Sequence | np.ndarray]) -> dict[str, tf.Tensor]:
        return self.signatures[signature](*self._tensors(signature, values))

    def _tensors(self, signature: str, values: Sequence[Sequence | np.ndarray]) -> list[tf.Tensor]:
        specs = self.inputs[signature]
        return [tf.constant(_padded(value, spec), spec.dtype) for value, spec in zip(values, specs, strict=True)]

    def answers_by_length(self, *columns: Sequence[Any], signature: str = DEFAULT) -> list[dict[str, Any]]:
        """The outputs `{name: array}` of each row, computed in batches of rows of similar length.

        Args:
            columns: n texts, n lists of texts, or n lists of a fixed number of integers, for each input.
            signature: the name of the signature.

        Raises:
            UserError: an output is not finite.
        """
        columns = tuple(list(column) for column in columns)
        lengths = [sum(_length(value) for value in row) for row in zip(*columns, strict=True)]
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        found: dict[int, dict[str, Any]] = {}
        numbers: list[np.ndarray] = []
        for first in range(0, len(order), _AT_ONCE):
            batch = order[first : first + _AT_ONCE]
            outputs = self.answer(signature, *([column[index] for index in batch] for column in columns))
            floats = [values.reshape(len(batch), -1) for values in outputs.values() if values.dtype.kind == "f"]
            numbers.extend(np.concatenate(floats, axis=1))
            for place, index in enumerate(batch):
                found[index] = {name: values[place] for name, values in outputs.items()}
        require_numbers(numbers)
        return [found[index] for index in range(len(order))]

    def outputs(self, signature: str) -> list[str]:
        """The names of a signature's outputs, sorted."""
        return sorted(self.signatures[signature].structured_outputs)

    @contextlib.contextmanager
    def tracked(self) -> Iterator[tf.Module]:
        """The object to pass to `tf.saved_model.save` with the signatures, in a context in which none are called."""
        with self._network.tracked(self.signatures.values()) as holder:
            holder.tokenizer = list(self.text_inputs.tokenizer.resources)
            yield holder


def serving_function(
    bert: LoadedModel,
    dtype: str = FLOAT32,
    jit: bool = False,
    top_k: int = TOP_K,
    n_best: int = N_BEST,
    encoder_only: bool = False,
) -> ServingFunction:
    """The signatures of a model, traced.

    Args:
        bert: the result of `keras_bert.load`.
        dtype: the type in which weights are stored, one of `network.DTYPES`; the computation is in float32.
        jit: whether XLA compiles the network for single rows, see `Network`.
        top_k: the number of pieces for each [MASK], or to follow a text.
        n_best: the number of answers to a question about a passage.
        encoder_only: whether to return vectors, whatever head the model has.

    Raises:
        UserError: config.json has invalid settings for reading texts.
    """
    text_inputs = TextInputs(bert.config, bert.tokenizer, bert.folder.reading)
    network = Network(bert.model, dtype, jit)
    head = None if encoder_only else bert.head
    predicts = None if encoder_only else bert.predicts
    if head:
        signatures = kind_of_head(head).signatures(bert, text_inputs, network, n_best)
    elif predicts == MASKED:
        signatures = masked_lm_signatures(text_inputs, network, top_k)
    elif predicts == NEXT:
        signatures = next_token_signatures(text_inputs, network, top_k)
    else:
        signatures = encoder_signatures(text_inputs, network)
    return ServingFunction(signatures, text_inputs, network)


def _length(value: str | Sequence[str | int]) -> int:
    """The number of characters in a text or a list of texts; 0 for integers."""
    return len(value) if isinstance(value, str) else sum(len(item) for item in value if isinstance(item, str))


def _padded(rows: Sequence | np.ndarray, spec: tf.TensorSpec) -> Sequence | np.ndarray:
    """Rows of texts that differ in length padded with "" to the longest; anything else unchanged."""
    if spec.dtype != tf.string or spec.shape.rank != 2 or len(set(map(len, rows))) < 2:
        return rows
    most = max(map(len, rows))
    return [[*row, *[""] * (most - len(row))] for row in rows]
