"""Masked LM with Keras' own `fit`: batches of texts with dynamic masking, the model and its loss."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig
from keras_bert.core.errors import UserError
from keras_bert.core.settings import Positive, Seed, checked, require
from keras_bert.data.batches.masking import DynamicMasking
from keras_bert.inference.preprocessing import Preprocessor
from keras_bert.models.bert.config import MASKED
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.term import term_named

_INPUTS = ("input_word_ids", "input_mask", "input_type_ids", "masked_lm_positions")
Batch = tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]  # (inputs, ids, weights)


class MaskedLM:
    """Trains a `BertForPreTraining` on masked tokens by `fit`, with the masks of pretraining.

    A text is a row: it is cut at the preprocessor's length, and short texts are not packed together.

    Args:
        preprocessor: converts texts or pairs to the encoder's inputs, of fixed length.
        share: the share of tokens to predict.
        unit: what is masked as a whole: `token`, `word`, `ngram` or `span`.
        seed: the seed of the masks.

    Attributes:
        masking: the `DynamicMasking`, which draws from the seed, the epoch and the text's number.
        max_predictions: the most tokens to predict in a row.

    Raises:
        ValueError: an invalid argument.

    Example:
        bert = keras_bert.load("runs/demo")
        masked_lm = keras_bert.MaskedLM(bert.preprocessor(max_length=16))
        model = masked_lm.model(bert.model)
        model.compile(keras_bert.AdamW(1e-3), masked_lm.loss(), jit_compile=False)
        texts = tf.data.Dataset.from_tensor_slices(["The cat sat.", "A dog slept on the mat."])
        model.fit(masked_lm.batches(texts, batch_size=2, epochs=2), verbose=0)
    """

    @checked
    def __init__(self, preprocessor: Preprocessor, share: float = 0.15, unit: str = "token", seed: Seed = 0):
        if preprocessor.tokenizer is None or preprocessor.length != "fixed":
            raise ValueError(
                f"preprocessor: needs a tokenizer and length='fixed'. Received: length={preprocessor.length!r}."
            )
        units = ("token", "word", "ngram", "span")
        require(unit in units, "unit", f"one of {', '.join(units)}", unit)
        self.preprocessor = preprocessor
        self.max_predictions = max(1, round(preprocessor.max_length * share))
        config = MaskingConfig(share=share, unit=unit)  # type: ignore[arg-type]
        self.masking = DynamicMasking(config, self.max_predictions, preprocessor.tokenizer.vocabulary, seed)

    @checked
    def batches(
        self, texts: tf.data.Dataset, batch_size: Positive[int], epochs: Positive[int] | None = 1
    ) -> tf.data.Dataset:
        """The batches of all epochs in sequence, each epoch with its own masks.

        Args:
            texts: strings, or pairs of strings as tuples or as dicts of two columns.
            batch_size: texts in a batch; the very last batch may have fewer.
            epochs: how often to read the texts; None for endless batches, for `fit(…, steps_per_epoch=…)`.

        Returns: (inputs, ids, weights): the inputs of `model` [batch, …] int32; the original ids [batch, predictions]
            int32; and 1 for predictions, 0 for padding [batch, predictions] float32.

        Raises:
            UserError: the number of texts, and so of batches, is unknown.
            ValueError: `texts` is no data set, or a number is not above 0.
        """
        # Without their number, Keras finds the end of the batches by an extra step, which decays the weights.
        count = tf.data.INFINITE_CARDINALITY
        if epochs is not None:
            texts_in_epoch = int(texts.cardinality())
            if texts_in_epoch < 0:
                raise UserError(
                    "texts: needs a known number. Received: an unknown or infinite one. Give epochs=None here and "
                    "steps_per_epoch to fit, or texts.apply(tf.data.experimental.assert_cardinality(NUMBER))."
                )
            count = -(-texts_in_epoch * epochs // batch_size)
        numbers = tf.data.Dataset.range(tf.int64.max if epochs is None else epochs)
        rows = numbers.flat_map(lambda epoch: texts.enumerate().map(lambda number, columns: (epoch, number, columns)))
        batches = rows.batch(batch_size).map(self._masked, num_parallel_calls=tf.data.AUTOTUNE)
        return batches.apply(tf.data.experimental.assert_cardinality(count)).prefetch(2)

    def _masked(self, epochs: tf.Tensor, numbers: tf.Tensor, texts: Any) -> Batch:
        inputs = self.preprocessor(texts)
        lengths = tf.reduce_sum(inputs["input_mask"], axis=1)
        masked = self.masking(inputs["input_word_ids"], lengths, numbers, epochs)
        inputs = {**inputs, **masked}
        return {name: inputs[name] for name in _INPUTS}, masked["masked_lm_ids"], masked["masked_lm_weights"]

    def model(self, model: BertForPreTraining) -> keras.Model:
        """A model from a batch's inputs to logits [batch, predictions, vocab] float32, sharing `model`'s weights.

        Freezes the pooler and the heads that masked LM does not train, as pretraining does.

        Raises:
            UserError: the model has no masked LM head, or does not predict masked tokens.
        """
        if not isinstance(model, BertForPreTraining):
            raise UserError(
                "model: needs a BertForPreTraining, such as load(MODEL).model with a masked LM head. "
                f"Received: {type(model).__name__}."
            )
        if model.config.predicts != MASKED:
            raise UserError(f"model: needs one that predicts masked tokens. Received: {model.config.predicts} tokens.")
        for term in map(term_named, model.terms):
            model.head_of(term).trainable = False
        if model.encoder.pooler is not None:
            model.encoder.pooler.trainable = False
        widths = dict.fromkeys(_INPUTS, self.preprocessor.max_length) | {"masked_lm_positions": self.max_predictions}
        inputs = {name: keras.Input((width,), dtype="int32", name=name) for name, width in widths.items()}
        return keras.Model(inputs, model(inputs)["mlm_logits"], name="masked_lm")

    def loss(self) -> keras.losses.Loss:
        """The mean cross-entropy of a batch's predictions, in nats, as in pretraining."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="mean_with_sample_weight")
