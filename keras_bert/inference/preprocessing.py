"""A Keras layer from strings to the encoder's inputs, for `ds.map` and for models that take strings."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_bert.config.reading import LONG, SHORTEST, TRUNCATE, WINDOWS
from keras_bert.core import whole_files
from keras_bert.core.settings import checked
from keras_bert.core.yaml_and_json import read_json
from keras_bert.inputs.rows import PieceSpans, padded_rows
from keras_bert.inputs.windows import fit_rows
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.tokenizers import Tokenizer, make_tokenizer
from keras_bert.text.vocabulary import Vocabulary, find_vocabulary

_INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
_LENGTHS = LONGEST, FIXED, RAGGED = "longest", "fixed", "ragged"
_SETTINGS = "tokenizer.json"
Texts = Any  # Strings [batch]; two such columns (first, second); or a dict of one or two columns.


@keras.saving.register_keras_serializable(package="keras_bert")
class Preprocessor(keras.layers.Layer):
    """Converts texts or pairs of texts into the encoder's inputs, with the same ids as in training and serving.

    ```python
    preprocess = bert.preprocessor(max_length=128)
    inputs = preprocess(["The cat sat."])                                    # {"input_word_ids": [1, 128], …}
    batches = texts.batch(32).map(preprocess)                                # a tf.data.Dataset
    model = keras.Model(text := keras.Input((), dtype="string"), head(bert.encoder(preprocess(text))))
    ```

    A model with it saves to a `.keras` file, vocabulary included. It runs on the CPU, and XLA cannot compile it:
    `model.compile(…, jit_compile=False)`.

    Args:
        tokenizer: the tokenizer; None only while loading a `.keras` file.
        max_length: the most tokens of a row, special tokens included.
        long: how longer texts are shortened: `truncate` or `head_tail`.
        length: `fixed`: every row has `max_length` columns; `longest`: as many as the longest row of the batch;
            `ragged`: as many as it has tokens, in `tf.RaggedTensor`s, for batching again, such as by length.
        name: the layer's name.
        **kwargs: as in `keras.layers.Layer`.

    Raises:
        ValueError: an invalid argument.
    """

    @checked
    def __init__(
        self,
        tokenizer: Tokenizer | None = None,
        max_length: int = 128,
        long: str = TRUNCATE,
        length: str = FIXED,
        name: str = "preprocess",
        **kwargs: Any,
    ):
        super().__init__(name=name, trainable=False, **kwargs)
        ways = [way for way in LONG if way != WINDOWS]
        if long not in ways or length not in _LENGTHS:
            raise ValueError(
                f"long, length: need {' or '.join(ways)} and {', '.join(_LENGTHS)}. Received: {long}, {length}."
            )
        if max_length < SHORTEST:
            raise ValueError(f"max_length: needs {SHORTEST} tokens or more. Received: {max_length}.")
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.long = long
        self.length = length
        # Keras would convert the strings to tensors of its own dtype.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.built = True

    def call(self, texts: Texts) -> dict[str, tf.Tensor | tf.RaggedTensor]:
        """The encoder's inputs, int32 [batch, seq] each; ragged ones must be padded for an encoder.

        Args:
            texts: strings [batch]; for pairs, two such columns, as a tuple or a dict.
        """
        if self.tokenizer is None:
            raise ValueError("tokenizer: needs one to read texts. Received: None. Give load(MODEL).tokenizer.")
        columns, vocabulary = _columns(texts), self.tokenizer.vocabulary
        first, last = columns[0].shape, columns[-1].shape
        if not first.is_compatible_with(last):  # Ops would pair a single text with each of the others.
            raise ValueError(f"texts: needs columns of one length. Received: shapes {first} and {last}.")
        with tf.device("CPU"):
            pieces = [PieceSpans.of(self.tokenizer.tokenize(column)) for column in columns]
            segments, _ = fit_rows(pieces, self.max_length, self.long, None, vocabulary)
            rows = padded_rows(segments, vocabulary, [self.max_length] if self.length == FIXED else None)
            if self.length == RAGGED:
                lengths = tf.reduce_sum(rows["input_mask"], axis=1)
                return {name: tf.RaggedTensor.from_tensor(rows[name], lengths) for name in _INPUTS}
        seq = self.max_length if self.length == FIXED else None
        return {name: tf.ensure_shape(rows[name], [None, seq]) for name in _INPUTS}

    def compute_output_spec(self, texts: Texts) -> dict[str, keras.KerasTensor]:
        """The inputs' specs, from the shapes alone, so that a symbolic model needs no tokenizer yet."""
        first = _columns(texts, as_tensors=False)[0]
        shape = (first.shape[0], self.max_length if self.length == FIXED else None)
        is_ragged = self.length == RAGGED
        return {name: keras.KerasTensor(shape, dtype="int32", ragged=is_ragged) for name in _INPUTS}

    def get_config(self) -> dict[str, Any]:
        own = {"max_length": self.max_length, "long": self.long, "length": self.length}
        base = super().get_config()
        return {**{key: base[key] for key in ("name", "dtype")}, **own}

    def save_assets(self, dir_path: str) -> None:
        """Writes the vocabulary and the tokenizer's settings into a `.keras` file."""
        assert self.tokenizer is not None
        vocabulary = self.tokenizer.vocabulary
        if vocabulary.added:
            raise ValueError(
                f"{vocabulary.added[0].content}: a .keras file has no place for added tokens. "
                "Write a model folder with keras_bert.write_model_folder."
            )
        vocabulary.to_file(os.path.join(dir_path, vocabulary.file_name))
        own = {name: getattr(self.tokenizer, name) for name in vocabulary.tokenizer_settings}
        whole_files.write_json(os.path.join(dir_path, _SETTINGS), own)

    def load_assets(self, dir_path: str) -> None:
        """Reads what `save_assets` wrote."""
        file = find_vocabulary(dir_path)
        assert file is not None
        own = read_json(os.path.join(dir_path, _SETTINGS))
        self.tokenizer = make_tokenizer(Vocabulary.from_file(file), dataclasses.replace(TokenizerSettings(), **own))


def _columns(texts: Texts, as_tensors: bool = True) -> list[Any]:
    """One or two columns of strings [batch]. Raises `ValueError` for another number."""
    columns = [texts]
    if isinstance(texts, Mapping):
        columns = list(texts.values())
    elif isinstance(texts, tuple) or isinstance(texts, Sequence) and texts and not isinstance(texts[0], (str, bytes)):
        columns = list(texts)
    if not 1 <= len(columns) <= 2:
        raise ValueError(f"texts: needs one column of texts, or two for pairs. Received: {len(columns)}.")
    return [tf.convert_to_tensor(column, tf.string) for column in columns] if as_tensors else columns
