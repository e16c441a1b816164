"""The base class of the models for pretraining and for every task: an encoder with heads."""

from typing import Any

from keras import ops

from keras_bert.layers.bilstm import BiLstm
from keras_bert.layers.heads import ClassificationHead
from keras_bert.layers.tensors import Batch, Tensor, arguments_of
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.configured_model import ConfiguredModel
from keras_bert.models.kind import kind_of_config


class EncoderWithHeads(ConfiguredModel):
    """An encoder of the config's kind of model. Subclasses create their heads and then call `build()`.

    They keep further arguments of their own as attributes of the same names, for `get_config`.

    Args:
        bilstm_size: the units in each direction of a BiLSTM between the encoder and the heads, instead of the pooler;
            None for no BiLSTM.
    """

    def __init__(
        self, config: BertConfig, with_pooler: bool = True, bilstm_size: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(config, **kwargs)
        make_encoder = kind_of_config(config).make_encoder
        with_pooler = with_pooler and bilstm_size is None
        self.encoder = make_encoder(config, with_pooler=with_pooler, dtype=self.dtype_policy, name="encoder")
        self.bilstm = None
        if bilstm_size is not None:
            self.bilstm = BiLstm(config.hidden_size, bilstm_size, dtype=self.dtype_policy, name="bilstm")

    @property
    def state_size(self) -> int:
        """The size of the states of `encoded`."""
        return self.config.hidden_size if self.bilstm is None else 2 * self.bilstm.lstm_size

    def encoded(self, inputs: Batch, training: bool = False) -> dict[str, Any]:
        """The inputs of the heads: the encoder's outputs, or those of a BiLSTM on top of it."""
        return self.on_top(self.encoder(inputs, training=training), inputs["input_mask"], training)

    def pooled(self, inputs: Batch, training: bool = False) -> Tensor:
        """The pooled vector of `encoded`, [batch, hidden]. The last block computes only what the pooler reads."""
        if self.bilstm is not None or not kind_of_config(self.config).attends:
            return self.encoded(inputs, training)["pooled_output"]
        self.require_inputs(inputs, "input_mask")
        none = ops.zeros_like(inputs["input_mask"][:, :0], dtype="int32")
        return self.encoder(inputs, training=training, positions=none)["pooled_output"]

    def on_top(self, outputs: dict[str, Any], input_mask: Tensor, training: bool = False) -> dict[str, Any]:
        """`encoded`, from the encoder's outputs."""
        if self.bilstm is None:
            return outputs
        states, pooled = self.bilstm(outputs["sequence_output"], input_mask > 0, training=training)
        return {"sequence_output": states, "pooled_output": pooled}

    def make_classifier(
        self, num_labels: int, name: str = "classifier", dropout_prob: float | None = None
    ) -> ClassificationHead:
        """Create a head for the output of `encoded`.

        The default of `dropout_prob` is the config's `head_dropout_prob`.
        """
        config = self.config
        dropout_prob = config.head_dropout_prob if dropout_prob is None else dropout_prob
        return ClassificationHead(
            num_labels, self.state_size, dropout_prob, config.initializer_range, dtype=self.dtype_policy, name=name
        )

    def get_config(self) -> dict[str, Any]:
        own = {} if self.bilstm is None else {"bilstm_size": self.bilstm.lstm_size}
        return {**arguments_of(self, EncoderWithHeads), **super().get_config(), **own}
