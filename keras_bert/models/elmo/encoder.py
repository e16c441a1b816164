"""The encoder of an ELMo-like model: from token ids to the states of both language models at each token."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.dropout import Dropout
from keras_bert.layers.embeddings import WordEmbeddings
from keras_bert.layers.heads import Pooler
from keras_bert.layers.in_training import perturbed
from keras_bert.layers.tensors import Batch, PlainLayer, Tensor
from keras_bert.models.bert.encoder import ConfiguredEncoder, last_state
from keras_bert.models.elmo.kind import ElmoConfig


@keras.saving.register_keras_serializable(package="keras_bert")
class ElmoBlock(PlainLayer):
    """A layer of both language models, which are independent of each other.

    Args:
        width: the units of each direction, and the width of its input.
        is_residual: whether the input is added to the output.
        dropout_rate: the dropout of the output.

    Call arguments:
        states: [batch, seq, 2 * width], the forward direction's and the backward direction's side by side.
        is_token: [batch, seq] bool, False at padding, which is at the end and does not affect other tokens.
    Returns: as `states`.
    """

    def __init__(self, width: int, is_residual: bool = False, dropout_rate: float = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width = width
        self.is_residual = is_residual
        self.dropout_rate = dropout_rate
        # cuDNN rejects rows of nothing but padding, such as those that fill up a batch, and XLA rejects cuDNN.
        options = {"return_sequences": True, "use_cudnn": False, "dtype": self.dtype_policy}
        self.forward = keras.layers.LSTM(width, name="forward", **options)
        self.backward = keras.layers.LSTM(width, go_backwards=True, name="backward", **options)
        self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy, name="dropout")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        for lstm in (self.forward, self.backward):
            lstm.build((None, None, self.width))

    def call(self, states: Tensor, is_token: Tensor, training: bool = False) -> Tensor:
        ahead = self.forward(states[..., : self.width], mask=is_token, training=training)
        back = self.backward(states[..., self.width :], mask=is_token, training=training)
        output = ops.concatenate([ahead, ops.flip(back, axis=1)], axis=-1)
        output = self.dropout(output, training=training)
        return states + output if self.is_residual else output


@keras.saving.register_keras_serializable(package="keras_bert")
class ElmoEncoder(ConfiguredEncoder):
    """A left-to-right and a right-to-left LSTM over the same word embeddings (Peters et al. 2018, section 3).

    Its inputs and outputs are those of a `BertEncoder`, except that there are no attentions, that `input_type_ids` are
    not used, and that `causal` changes nothing: the first half of a state has seen the tokens up to its own, the second
    half those from its own on.

    Args:
        with_pooler: whether to add the pooler, which reads each direction's state after its last token.

    Attributes:
        recompute_every: must be 0.

    Example:
        config = keras_bert.ElmoConfig(vocab_size=60, hidden_size=16)
        ids = np.array([[1, 2, 3]], "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
        keras_bert.ElmoEncoder(config)(inputs)["sequence_output"]      # [1, 3, 16]
    """

    recomputes = False

    def __init__(self, config: ElmoConfig, with_pooler: bool = True, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        width, dropout, policy = config.embedding_width, config.hidden_dropout_prob, self.dtype_policy
        self.embeddings = WordEmbeddings(
            config.vocab_size, width, config.initializer_range, dropout, dtype=policy, name="embeddings"
        )
        self.blocks = [
            ElmoBlock(width, index > 0, dropout, dtype=policy, name=f"block_{index}")
            for index in range(config.num_hidden_layers)
        ]
        self.pooler = None
        if with_pooler:
            self.pooler = Pooler(config.hidden_size, config.initializer_range, dtype=policy, name="pooler")
        self.build()

    def call(
        self, inputs: Batch, training: bool = False, return_attentions: bool = False, causal: bool | None = None
    ) -> dict[str, Any]:
        if return_attentions:
            raise ValueError("return_attentions: needs a model with attention. Received: an ELMo.")
        self.require_inputs(inputs, "input_word_ids", "input_mask")
        words = perturbed(self.embeddings(inputs["input_word_ids"], training=training))
        is_token = ops.not_equal(inputs["input_mask"], 0)
        states = [ops.concatenate([words, words], axis=-1)]
        for block in self.blocks:
            states.append(block(states[-1], is_token, training=training))
        outputs = {"sequence_output": states[-1], "hidden_states": states}
        if self.pooler is not None:
            width = self.config.embedding_width
            forward = last_state(states[-1][..., :width], inputs["input_mask"])
            ends = ops.concatenate([forward, states[-1][:, :1, width:]], axis=-1)
            outputs["pooled_output"] = self.pooler(ends)
        return outputs
