"""The encoder: from token ids to a vector for each token and one for the sequence."""

import functools
from typing import Any, ClassVar

import keras
from keras import ops

from keras_bert.layers.dropout import recomputed
from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.layers.encoder_block import EncoderBlock, SelfAttention
from keras_bert.layers.heads import Pooler
from keras_bert.layers.in_training import perturbed
from keras_bert.layers.tensors import Batch, Tensor, gather_positions
from keras_bert.layers.visibility import as_bias, hidden_positions
from keras_bert.models.bert.config import SINUSOIDAL, BertConfig
from keras_bert.models.configured_model import ConfiguredModel


def embeddings_options(config: BertConfig) -> dict[str, Any]:
    """The arguments of an architecture's `BertEmbeddings`."""
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.embedding_width,
        "max_position_embeddings": config.max_position_embeddings,
        "type_vocab_size": config.type_vocab_size,
        "initializer_range": config.initializer_range,
        "layer_norm_eps": config.layer_norm_eps,
        "dropout_rate": config.hidden_dropout_prob,
        "sinusoidal": config.positions == SINUSOIDAL,
        "first_position": config.first_position,
        "name": "embeddings",
    }


def block_options(config: BertConfig) -> dict[str, Any]:
    """The arguments of an architecture's `EncoderBlock`s."""
    return {
        "hidden_size": config.hidden_size,
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": config.feed_forward_width,
        "hidden_act": config.hidden_act,
        "initializer_range": config.initializer_range,
        "layer_norm_eps": config.layer_norm_eps,
        "hidden_dropout_rate": config.hidden_dropout_prob,
        "attention_dropout_rate": config.attention_probs_dropout_prob,
    }


class ConfiguredEncoder(ConfiguredModel):
    """An encoder, with or without a pooler.

    Class attributes:
        recomputes: whether `recompute_every` may be set.
    """

    recomputes: ClassVar[bool] = True

    pooler: Pooler | None

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.recompute_every = 0

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "with_pooler": self.pooler is not None}


@keras.saving.register_keras_serializable(package="keras_bert")
class BertEncoder(ConfiguredEncoder):
    """BERT's Transformer encoder (Devlin et al. 2018, section 3), with the pooler.

    Encoders of similar kinds of models override the methods that make its layers.

    Class attributes:
        block_class: the class of the blocks.
        embeddings_class: the class of the embeddings, with the arguments of `BertEmbeddings`.

    Args:
        with_pooler: whether to add the pooler; models that use only the tokens' vectors need none.
        embeddings: a layer to use instead of that of `make_embeddings()`.

    Attributes:
        recompute_every: 0, or n to keep only the input of every n-th block for the backward pass and recompute the
            block there (Chen et al. 2016), which saves memory and costs time. Only training uses it.

    Call arguments:
        inputs: `input_word_ids`, `input_mask` (1 for tokens, 0 for padding) and `input_type_ids` (segment), each
            [batch, seq] int32.
        return_attentions: whether to return `attentions` too.
        causal: whether tokens attend only to themselves and those before them; None: as the config says.
        positions: [batch, positions] int32, the only positions to compute the last block for; None for all. In
            `sequence_output` and the last of `hidden_states` and of `attentions` they replace seq; in the latter two,
            the position that the pooler reads, if there is one, comes before them.

    Returns a dict:
        sequence_output: [batch, seq, hidden], the last layer.
        pooled_output: [batch, hidden], if there is a pooler: of [CLS], or under causal attention of the last token,
            the only one that has seen the whole row, unless the config sets `pools_cls`.
        hidden_states: list of [batch, seq, hidden]: the embeddings, then each block; the last is `sequence_output`.
        attentions: on request, list of [batch, heads, seq, seq], one for each block.

    Raises:
        ValueError: an input is missing, a sequence is longer than `max_position_embeddings` or, in eager mode, an id is
            out of range.

    Example:
        config = keras_bert.BertConfig(vocab_size=30522, hidden_size=128, num_hidden_layers=2, num_attention_heads=2)
        encoder = keras_bert.BertEncoder(config)
        ids = np.array([[101, 7592, 102]], "int32")
        encoder({"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0})["pooled_output"]
    """

    block_class: ClassVar[type[EncoderBlock]] = EncoderBlock
    embeddings_class: ClassVar[type[BertEmbeddings]] = BertEmbeddings

    def __init__(
        self, config: BertConfig, with_pooler: bool = True, embeddings: BertEmbeddings | None = None, **kwargs: Any
    ) -> None:
        super().__init__(config, **kwargs)
        self.embeddings = embeddings or self.make_embeddings()
        self.blocks = self.make_blocks()
        self.final_layer_norm = self.make_final_layer_norm()
        self.pooler = self.make_pooler() if with_pooler else None
        self.build()

    def make_embeddings(self) -> BertEmbeddings:
        """The layer from ids to the first hidden states."""
        return self.embeddings_class(**embeddings_options(self.config), dtype=self.dtype_policy)

    def make_blocks(self) -> list[EncoderBlock]:
        """The blocks in the order in which states pass through them."""
        return [self.make_block(index) for index in range(self.config.num_hidden_layers)]

    def make_block(self, index: int, **options: Any) -> EncoderBlock:
        """The block at an index; `options` are further arguments of `EncoderBlock`."""
        options = {**block_options(self.config), **options}
        return self.block_class(**options, dtype=self.dtype_policy, name=f"block_{index}")

    def make_final_layer_norm(self) -> keras.layers.LayerNormalization | None:
        """The layer from the last block's states to the last hidden states; None where these are the same."""
        return None

    def make_pooler(self) -> Pooler:
        """The layer from the last hidden states to one vector."""
        return Pooler(self.config.hidden_size, self.config.initializer_range, dtype=self.dtype_policy, name="pooler")

    def layers_of_blocks(self) -> list[keras.layers.Layer]:
        """All layers in the blocks, each once: blocks may share them (ALBERT)."""
        return list({id(layer): layer for block in self.blocks for layer in block._flatten_layers()}.values())

    def enable_lora(self, rank: int, alpha: float | None = None) -> None:
        """Train low-rank additions to the blocks' dense kernels instead of the weights (Hu et al. 2021).

        A kernel [in, out] becomes `kernel + alpha / rank * a @ b`, with `a` [in, rank] and `b` [rank, out]; `b` begins
        as zeros, so that outputs do not change at first. The embeddings, kernels, biases and LayerNorms are frozen; the
        pooler is not. Call it before `compile`. `write_model_folder` writes the sums.

        Args:
            rank: at least 1.
            alpha: the additions are multiplied by `alpha / rank`; by default `rank`, for a factor of 1.

        Raises:
            ValueError: LoRA is already enabled, or a block has no self-attention.
        """
        if rank < 1:
            raise ValueError(f"rank: needs at least 1. Received: {rank}.")
        if not all(isinstance(block.attention, SelfAttention) for block in self.blocks):
            raise ValueError(f"enable_lora: needs blocks of self-attention. Received: a {type(self).__name__}.")
        for layer in filter(None, (self.embeddings, self.final_layer_norm)):
            layer.trainable = False
        for layer in self.layers_of_blocks():
            if isinstance(layer, keras.layers.Dense):
                layer.enable_lora(rank, alpha)
                layer.bias.trainable = False
            elif isinstance(layer, keras.layers.LayerNormalization):
                layer.trainable = False

    def call(
        self,
        inputs: Batch,
        training: bool = False,
        return_attentions: bool = False,
        causal: bool | None = None,
        positions: Tensor | None = None,
    ) -> dict[str, Any]:
        self.require_inputs(inputs, "input_word_ids", "input_mask", "input_type_ids")
        hidden = perturbed(self.embeddings(inputs["input_word_ids"], inputs["input_type_ids"], training=training))
        causal = self.config.is_causal if causal is None else causal
        attention_bias = self.visibility(inputs["input_mask"], causal)
        hidden_states, attentions = [hidden], []
        recompute_every = self.recompute_every if training and not return_attentions else 0
        pools_last = causal and not self.config.pools_cls
        if positions is not None:
            positions = self._with_pooled(positions, inputs["input_mask"], pools_last)
        for number, block in enumerate(self.blocks, start=1):
            options = {"positions": positions} if positions is not None and number == len(self.blocks) else {}
            if recompute_every and number % recompute_every == 0:
                hidden = recomputed(functools.partial(_hidden_alone, block, **options))(hidden, attention_bias)
            else:
                hidden, probabilities = block(hidden, attention_bias, training=training, **options)
                attentions.append(probabilities)
            hidden_states.append(hidden)
        hidden_states[-1] = hidden = self.after_blocks(hidden)
        outputs = {"sequence_output": hidden, "hidden_states": hidden_states}
        if self.pooler is not None:
            if positions is not None:
                outputs["sequence_output"] = hidden[:, 1:]
            elif pools_last:
                hidden = last_state(hidden, inputs["input_mask"])
            outputs["pooled_output"] = self.pooler(hidden)
        if return_attentions:
            outputs["attentions"] = attentions
        return outputs

    def _with_pooled(self, positions: Tensor, input_mask: Tensor, pools_last: bool) -> Tensor:
        """`positions`, preceded by the one that the pooler reads if there is a pooler."""
        if self.pooler is None:
            return positions
        pooled = last_place(input_mask) if pools_last else ops.zeros_like(input_mask[:, :1], dtype="int32")
        return ops.concatenate([pooled, positions], axis=1)

    def after_blocks(self, hidden: Tensor) -> Tensor:
        """The last hidden states [..., hidden], from the output of the last block."""
        return hidden if self.final_layer_norm is None else self.final_layer_norm(hidden)

    def visibility(self, input_mask: Tensor, causal: bool) -> Tensor:
        """The blocks' input besides the states, which determines the tokens that they see."""
        return as_bias(hidden_positions(input_mask, causal), self.compute_dtype)


def last_place(input_mask: Tensor) -> Tensor:
    """The position of the last token of each row that is not padding, int32 [batch, 1]."""
    places = ops.arange(ops.shape(input_mask)[1], dtype="int32")
    return ops.max(places * ops.cast(input_mask > 0, "int32"), axis=1)[:, None]


def last_state(states: Tensor, input_mask: Tensor) -> Tensor:
    """The states [batch, seq, hidden] at the last token of each row that is not padding: [batch, 1, hidden]."""
    return gather_positions(states, last_place(input_mask))


def _hidden_alone(block: EncoderBlock, hidden: Tensor, attention_bias: Tensor, **options: Any) -> Tensor:
    """A block's output in training, without the probabilities, which would otherwise be kept for their gradient."""
    return block(hidden, attention_bias, training=True, **options)[0]
