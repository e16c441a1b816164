"""XLNet's encoder (Yang et al. 2019, sections 2.2 to 2.5)."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.dropout import Dropout
from keras_bert.layers.embeddings import WordEmbeddings
from keras_bert.layers.encoder_block import EncoderBlock
from keras_bert.layers.heads import Pooler
from keras_bert.layers.in_training import perturbed
from keras_bert.layers.relative_attention import RelativeAttention, hidden_by_order, relative_sinusoids
from keras_bert.layers.tensors import Batch, Tensor, gather_positions, truncated_normal
from keras_bert.layers.visibility import as_bias
from keras_bert.models.bert.encoder import ConfiguredEncoder, block_options, last_state
from keras_bert.models.xlnet.kind import XlnetConfig


class XlnetBlock(EncoderBlock):
    """An `EncoderBlock` with `RelativeAttention`, and dropout within the feed-forward network."""

    attention: RelativeAttention

    def __init__(self, config: XlnetConfig, **kwargs: Any) -> None:
        attention = RelativeAttention(
            config.hidden_size,
            config.num_attention_heads,
            config.initializer_range,
            config.attention_probs_dropout_prob,
            dtype=kwargs["dtype"],
            name="attention",
        )
        dropout = config.hidden_dropout_prob
        super().__init__(**block_options(config), attention=attention, inner_dropout_rate=dropout, **kwargs)

    def call(self, queried: Tensor, *others: Any, training: bool = False) -> tuple[Tensor, Tensor]:
        """Compute the block; `others` are the further arguments of `RelativeAttention`."""
        attended, probabilities = self.attention(queried, *others, training=training)
        return self.after_attention(queried, attended, training), probabilities


@keras.saving.register_keras_serializable(package="keras_bert")
class XlnetEncoder(ConfiguredEncoder):
    """XLNet's Transformer-XL (Yang et al. 2019): the content stream and, for pretraining, the query stream.

    Its inputs and outputs are those of a `BertEncoder`, with the following differences. Tokens have no positions, only
    distances, so a row may be padded on either side.

    Args:
        with_pooler: whether to add the pooler, which reads the last token of a row.

    Attributes:
        recompute_every: must be 0.
        mask_embedding: [1, 1, hidden], the query stream's first state. Only pretraining makes it trainable, because
            fine-tuning has no query stream and so no gradient for it.

    Call arguments:
        inputs: may also have
            perm_mask: [batch, seq, seq], 1 at [b, i, j] if token i does not see token j.
            target_mapping: [batch, predictions, seq] one-hot, the place of each prediction. It adds the query stream,
                which does not see the token that it predicts.
            permutation_ranks: [batch, seq] int32, instead of both, with masked_lm_positions [batch, predictions]
                int32: see `hidden_by_order`.
            mems: a list of [batch, memory, hidden] for each block, from an earlier call; its tokens count as segment 0.
            mems_mask: [batch, memory], 0 for the tokens of the memory that a row does not see.
        return_mems: whether to return `mems` too.

    Returns a dict:
        sequence_output, pooled_output, hidden_states, attentions: those of the content stream.
        query_output: for predictions, [batch, predictions, hidden], the last layer of the query stream.
        mems: on request or given `mems`, the states to pass to the call for the next row, without gradient.

    Example:
        config = keras_bert.XlnetConfig(vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2)
        ids = np.array([[17, 4, 3]], "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": np.array([[0, 0, 2]])}
        keras_bert.XlnetEncoder(config)(inputs)["pooled_output"]      # [1, 16], of <cls>
    """

    recomputes = False
    config: XlnetConfig

    def __init__(self, config: XlnetConfig, with_pooler: bool = True, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        width, dropout, policy = config.hidden_size, config.hidden_dropout_prob, self.dtype_policy
        self.embeddings = WordEmbeddings(
            config.vocab_size, width, config.initializer_range, dropout, dtype=policy, name="embeddings"
        )
        self.blocks = [
            XlnetBlock(config, dtype=policy, name=f"block_{index}") for index in range(config.num_hidden_layers)
        ]
        self.dropout = Dropout(dropout, dtype=policy, name="dropout")
        self.pooler = Pooler(width, config.initializer_range, dtype=policy, name="pooler") if with_pooler else None
        self.build()

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        if self.built:
            return
        self.embeddings.build()
        self.mask_embedding = self.add_weight(
            name="mask_embedding",
            shape=(1, 1, self.config.hidden_size),
            initializer=truncated_normal(self.config.initializer_range),
        )
        self.mask_embedding.trainable = False  # Only now: a gradient tape watches what was made trainable.
        super().build()

    def call(
        self,
        inputs: Batch,
        training: bool = False,
        return_attentions: bool = False,
        causal: bool | None = None,
        return_mems: bool = False,
    ) -> dict[str, Any]:
        if causal:
            raise ValueError("causal: is not supported by an XLNet, whose perm_mask says what a token sees.")
        predicted = () if inputs.get("permutation_ranks") is None else ("masked_lm_positions",)
        self.require_inputs(inputs, "input_word_ids", "input_mask", "input_type_ids", *predicted)
        states = perturbed(self.embeddings(inputs["input_word_ids"], training=training))
        batch, seq, width = ops.shape(states)
        mems = inputs.get("mems")
        remembered = 0 if mems is None else ops.shape(mems[0])[1]
        places = _predicted_places(inputs)
        query_bias, content_bias = self._biases(inputs, remembered, places)
        distances = relative_sinusoids(seq, remembered + seq, width, self.config.clamp_len)
        distances = self.dropout(ops.cast(distances, self.compute_dtype), training=training, of_batch=False)
        segments = inputs["input_type_ids"]
        of_keys = ops.pad(segments, [[0, 0], [remembered, 0]])
        is_other_segment = ops.not_equal(ops.expand_dims(segments, 2), ops.expand_dims(of_keys, 1))

        query = None
        if places is not None:
            first = ops.cast(self.mask_embedding, self.compute_dtype)
            query = self.dropout(ops.broadcast_to(first, (*ops.shape(places), width)), training=training)
            of_query = (query_bias, gather_positions(is_other_segment, places), places)
        hidden_states, attentions, new_mems = [states], [], []
        for index, block in enumerate(self.blocks):
            memory = None if mems is None else ops.cast(mems[index], self.compute_dtype)
            new_mems.append(self._remembered(states, memory))
            seen = states if memory is None else ops.concatenate([memory, states], axis=1)
            attended = block.attention.attended(seen, distances)
            if query is not None:
                query, _ = block(query, attended, *of_query, training=training)
            states, probabilities = block(states, attended, content_bias, is_other_segment, training=training)
            attentions.append(probabilities)
            hidden_states.append(states)

        sequence = self.dropout(states, training=training)
        outputs = {"sequence_output": sequence, "hidden_states": hidden_states}
        if query is not None:
            outputs["query_output"] = self.dropout(query, training=training)
        if self.pooler is not None:
            outputs["pooled_output"] = self.pooler(last_state(sequence, inputs["input_mask"]))
        if return_attentions:
            outputs["attentions"] = attentions
        if return_mems or mems is not None:
            outputs["mems"] = new_mems
        return outputs

    def _biases(self, inputs: Batch, remembered: int | Tensor, places: Tensor | None) -> tuple[Tensor | None, Tensor]:
        """The attention biases of the query stream, [batch, 1, predictions, memory + seq], and of the content stream.

        A token of the content stream always sees itself, and every token sees the memory, unless `mems_mask` hides it.
        """
        is_hidden = ops.expand_dims(ops.equal(inputs["input_mask"], 0), 1)
        seq = ops.shape(inputs["input_mask"])[1]
        if inputs.get("permutation_ranks") is not None:
            is_hidden = ops.logical_or(is_hidden, hidden_by_order(inputs["permutation_ranks"]))
        elif inputs.get("perm_mask") is not None:
            is_hidden = ops.logical_or(is_hidden, ops.not_equal(inputs["perm_mask"], 0))
        is_own = ops.cast(ops.eye(seq), "bool")[None]

        def for_memory_too(is_hidden: Tensor) -> Tensor:
            bias = ops.pad(as_bias(is_hidden, self.compute_dtype), [[0, 0], [0, 0], [remembered, 0]])
            if inputs.get("mems_mask") is not None:
                # Twice, so that a token that sees nothing else does not see this either.
                of_memory = 2 * as_bias(ops.equal(inputs["mems_mask"], 0), self.compute_dtype)
                bias += ops.pad(of_memory, [[0, 0], [0, seq]])[:, None]
            return bias[:, None]

        of_query = None
        if places is not None:
            square = ops.broadcast_to(is_hidden, (ops.shape(places)[0], seq, seq))
            of_query = for_memory_too(gather_positions(square, places))
        return of_query, for_memory_too(ops.logical_and(is_hidden, ops.logical_not(is_own)))

    def _remembered(self, states: Tensor, memory: Tensor | None) -> Tensor:
        """The memory for the next row, from a block's input and memory: [batch, memory, hidden]."""
        if self.config.reuse_len:
            states = states[:, : self.config.reuse_len]
        kept = states if memory is None else ops.concatenate([memory, states], axis=1)
        return ops.stop_gradient(kept[:, -self.config.mem_len :] if self.config.mem_len else kept)


def _predicted_places(inputs: Batch) -> Tensor | None:
    """The places that the query stream predicts, [batch, predictions] int32; None for no query stream."""
    if inputs.get("permutation_ranks") is not None:
        return inputs["masked_lm_positions"]
    mapping = inputs.get("target_mapping")
    return None if mapping is None else ops.argmax(mapping, axis=-1)
