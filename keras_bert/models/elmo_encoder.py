"""The encoder of an ELMo-like model: from token ids to what both language models know at each token."""

from typing import Any

import keras
from keras import ops

from keras_bert.config.elmo import ElmoConfig
from keras_bert.layers.elmo_layers import ElmoBlock, ElmoEmbeddings
from keras_bert.layers.pooler import Pooler
from keras_bert.models.encoder import ConfiguredEncoder, last_state
from keras_bert.models.tensors import Batch


@keras.saving.register_keras_serializable(package="keras_bert")
class ElmoEncoder(ConfiguredEncoder):
    """A left-to-right and a right-to-left LSTM over the same word embeddings (Peters et al. 2018, section 3).

    Its inputs and outputs are those of a `BertEncoder`, except that there are no attentions, that `input_type_ids` are
    not used, and that `causal` changes nothing: the first half of a state has seen the tokens up to its own, the second
    half those from its own on.

    Args:
        config: the architecture.
        with_pooler: whether to add the pooler, which reads what each direction has after its last token.

    Attributes:
        recompute_every: must be 0.
    """

    recomputes = False

    def __init__(self, config: ElmoConfig, with_pooler: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.recompute_every = 0
        width, dropout, policy = config.embedding_width, config.hidden_dropout_prob, self.dtype_policy
        self.embeddings = ElmoEmbeddings(
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

    def build(self, input_shape: Any = None) -> None:
        if self.built:
            return
        self.embeddings.build((None, None))
        for block in self.blocks:
            block.build()
        if self.pooler is not None:
            self.pooler.build((None, None, self.config.hidden_size))

    def call(
        self, inputs: Batch, training: bool = False, return_attentions: bool = False, causal: bool | None = None
    ) -> dict[str, Any]:
        if return_attentions:
            raise ValueError("return_attentions: needs a model with attention. Received: an ELMo.")
        words = self.embeddings(inputs["input_word_ids"], training=training)
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
