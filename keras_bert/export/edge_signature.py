"""The signature `tokens` as LiteRT can run it: no strings, and no shapes that depend on values."""

from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf

from keras_bert.config.bert import MASKED, NEXT
from keras_bert.config.heads import CrfTaggingConfig
from keras_bert.errors import UserError
from keras_bert.export.encoding import encoder_signatures
from keras_bert.export.masked_lm import masked_lm_at_positions
from keras_bert.export.network import Network
from keras_bert.export.next_token import next_token_signatures
from keras_bert.export.signature import Signature
from keras_bert.export.text_inputs import TextInputs
from keras_bert.inference.loading import LoadedModel
from keras_bert.task_kinds import kind_of_head

NONE, FLOAT16, INT8 = QUANTIZATIONS = ("none", "float16", "int8")
TOKENS = "tokens"


def edge_signature(
    bert: LoadedModel, quantization: str = NONE, top_k: int = 5, encoder_only: bool = False
) -> Signature:
    """The signature `tokens` of a model, without its outputs of strings; of a masked LM, `masked_lm_at_positions`.

    Args:
        bert: the result of `keras_bert.load`.
        quantization: how weights are stored, one of `QUANTIZATIONS`. Only INT8 changes the graph, for embeddings; the
            converter does the rest.
        top_k: the number of pieces for each [MASK], or to follow a text.
        encoder_only: whether to return vectors, whatever head the model has.

    Raises:
        UserError: config.json has invalid settings for reading texts, or the head has a CRF.
    """
    inputs = EdgeInputs(bert.config, bert.tokenizer, bert.folder.reading)
    network = EdgeNetwork(bert.model, quantization)
    head = None if encoder_only else bert.head
    predicts = None if encoder_only else bert.predicts
    if isinstance(head, CrfTaggingConfig):
        raise UserError(
            f"{bert.path}: --format litert needs a head without a CRF, because LiteRT lacks what finding its best "
            f"labels takes. Received: a {head.architecture}. Export a SavedModel, or the --encoder."
        )
    if head:
        signature = kind_of_head(head).signatures(bert, inputs, network, 1)[TOKENS]
    elif predicts == MASKED:
        signature = masked_lm_at_positions(inputs, network, top_k)
    elif predicts == NEXT:
        signature = next_token_signatures(inputs, network, top_k)[TOKENS]
    else:
        signature = encoder_signatures(inputs, network)[TOKENS]
    return Signature(lambda *tokens: _without_strings(signature.function(*tokens)), signature.inputs)


class EdgeInputs(TextInputs):
    """Inputs whose shapes are known as soon as those of the request are, so that LiteRT's delegates can run the graph.

    Padding is computed: send rows that are no longer than needed.
    """

    def from_tokens(
        self, input_word_ids: tf.Tensor, input_mask: tf.Tensor, input_type_ids: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        inputs, is_valid = self._checked(input_word_ids, input_mask, input_type_ids)
        longest = self.config.max_position_embeddings
        return {name: column[:, :longest] for name, column in inputs.items()}, is_valid

    def as_rows(self, tokens: tf.Tensor) -> tf.Tensor:
        # A product of dimensions would make all shapes after it depend on a value.
        return tf.reshape(tokens, tf.stack([-1, tf.shape(tokens)[2]]))


class EdgeNetwork(Network):
    """A network that computes padding and, for INT8, stores embedding tables with a scale for each row.

    The converter would give a whole table a single scale.
    """

    def __init__(self, model: keras.Model, quantization: str = NONE) -> None:
        super().__init__(model)
        self._look_up = _look_up_int8 if quantization == INT8 else tf.gather

    def encode(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self._encode(inputs, keeps_padding=True, look_up=self._look_up)


def _look_up_int8(table: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
    values = _values(table)
    scales = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-12) / 127
    rounded = tf.constant(np.round(values / scales).astype("int8"))
    return tf.cast(tf.gather(rounded, ids), tf.float32) * tf.gather(tf.constant(scales), ids)


def _values(table: tf.Variable) -> np.ndarray:
    with tf.init_scope():  # Out of the graph that is being traced.
        return table.numpy()


def _without_strings(outputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    return {name: output for name, output in outputs.items() if output.dtype != tf.string}
