"""The base class of the models for pretraining and for every task: an encoder with heads."""

import dataclasses
from typing import Any, TypeVar

import keras

from keras_bert.config.bert import BertConfig
from keras_bert.layers.classification_head import ClassificationHead
from keras_bert.model_kinds import config_from_mapping, kind_of_config

_Model = TypeVar("_Model", bound="EncoderWithHeads")


class EncoderWithHeads(keras.Model):
    """An encoder of the config's kind of model. Subclasses create their heads and then call `build()`.

    Args:
        config: the architecture of the encoder.
        with_pooler: whether the encoder has a pooler.
    """

    def __init__(self, config: BertConfig, with_pooler: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        make_encoder = kind_of_config(config).make_encoder
        self.encoder = make_encoder(config, with_pooler=with_pooler, dtype=self.dtype_policy, name="encoder")

    def make_classifier(
        self, num_labels: int, name: str = "classifier", dropout_prob: float | None = None
    ) -> ClassificationHead:
        """Creates a head for this encoder. The default of `dropout_prob` is the config's `head_dropout_prob`."""
        config = self.config
        dropout_prob = config.head_dropout_prob if dropout_prob is None else dropout_prob
        return ClassificationHead(
            num_labels, config.hidden_size, dropout_prob, config.initializer_range, dtype=self.dtype_policy, name=name
        )

    def build(self, input_shape: Any = None) -> None:
        for layer in self.layers:
            if not layer.built:
                layer.build((None, self.config.hidden_size))

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype_policy.name, "config": dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls: type[_Model], config: dict[str, Any]) -> _Model:
        return cls(**{**config, "config": config_from_mapping(config["config"])})
