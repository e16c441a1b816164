"""The base class of encoders and of models with heads: their config in a `.keras` file."""

import dataclasses
from typing import Any, TypeVar

import keras

from keras_bert.core.settings import checked
from keras_bert.layers.tensors import Batch
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import config_from_mapping

_Model = TypeVar("_Model", bound="ConfiguredModel")


class ConfiguredModel(keras.Model):
    """A model that Keras saves by its config and its quantization mode.

    Its layers are all built as soon as they are made: every shape follows from the config.
    """

    config: BertConfig

    @checked
    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        for layer in self.layers:
            if not layer.built:
                layer.build((None, None, self.config.hidden_size))

    def require_inputs(self, inputs: Batch, *names: str) -> None:
        """Raise `ValueError` if a batch lacks one of these inputs."""
        if missing := [name for name in names if name not in inputs]:
            raise ValueError(f"{type(self).__name__}: needs {', '.join(names)}. Missing: {', '.join(missing)}.")

    def get_config(self) -> dict[str, Any]:
        modes = (getattr(layer, "quantization_mode", None) for layer in self._flatten_layers(include_self=False))
        mode = next(filter(None, modes), None)
        quantized = {"quantization_mode": mode} if mode else {}
        config = dataclasses.asdict(self.config)
        return {"name": self.name, "dtype": self.dtype_policy.name, "config": config, **quantized}

    @classmethod
    def from_config(cls: type[_Model], config: dict[str, Any]) -> _Model:
        arguments = {**config, "config": config_from_mapping(config["config"])}
        mode = arguments.pop("quantization_mode", None)
        model = cls(**arguments)
        if mode:
            model.quantize(mode)  # Creates the file's variables; Keras loads their values later.
        return model
