"""A model that reads a text with an encoder and writes another with a decoder, one token after the other."""

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_bert.layers.decoder_block import DecodingBlock, KeysAndValues
from keras_bert.layers.tensors import Batch, Tensor
from keras_bert.layers.visibility import as_bias, hidden_positions, later_places
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.configured_model import ConfiguredModel
from keras_bert.models.kind import kind_of_config, with_article


class Cache(NamedTuple):
    """A decoder's state between tokens. The first axis of every tensor is rows.

    Attributes:
        targets: for each block, keys and values of the tokens so far, [rows, heads, width, head_size].
        memory: for each block, keys and values of the encoder's states, [rows, heads, seq, head_size].
        memory_bias: [rows, 1, 1, seq] float32, which masks the encoder's padding.
    """

    targets: tuple[KeysAndValues, ...]
    memory: tuple[KeysAndValues, ...]
    memory_bias: Tensor


class Decoder(keras.layers.Layer, abc.ABC):
    """Turns the embeddings of tokens and the encoder's states into states that predict the next tokens.

    Args:
        heads, head_size: of the blocks' self-attention.

    Attributes:
        blocks: `DecodingBlock`s.

    Call arguments:
        words: float32 [batch, targets, hidden], from the encoder's `embeddings.words` for the tokens.
        memory: [batch, seq, hidden], the encoder's states.
        memory_mask: [batch, seq] int32, 1 for tokens of the text, 0 for padding.
        decoder_mask: [batch, targets] int32, the same for the decoder's tokens; None if all are tokens.
        first_place: the position of the first word, int or int32 [batch, 1].
    Returns: states [batch, targets, hidden].
    """

    blocks: Sequence[DecodingBlock]

    def __init__(self, heads: int, head_size: int, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)  # `words` stay float32, as in `step`.
        self.heads = heads
        self.head_size = head_size

    @abc.abstractmethod
    def embedded(self, words: Tensor, first_place: Tensor | int, training: bool = False) -> Tensor:
        """The first block's input [batch, targets, hidden], for words that begin at a place."""

    def with_distances(self, attention_bias: Tensor, place: Tensor | None = None) -> Tensor:
        """Add the bias of relative positions to [..., targets or 1, width], for all targets or for one place."""
        return attention_bias

    def finished(self, hidden: Tensor, training: bool = False) -> Tensor:
        """The decoder's states, from the last block's output."""
        return hidden

    def call(
        self,
        words: Tensor,
        memory: Tensor,
        memory_mask: Tensor,
        decoder_mask: Tensor | None = None,
        first_place: Tensor | int = 0,
        training: bool = False,
    ) -> Tensor:
        hidden = self.embedded(words, first_place, training)
        mask = ops.ones(ops.shape(words)[:2], "int32") if decoder_mask is None else decoder_mask
        attention_bias = self.with_distances(as_bias(hidden_positions(mask, causal=True), self.compute_dtype))
        memory_bias = as_bias(hidden_positions(memory_mask, causal=False), self.compute_dtype)
        for block in self.blocks:
            hidden = block(hidden, attention_bias, block.remember(memory), memory_bias, training=training)
        return self.finished(hidden, training)

    def begin(self, memory: Tensor, memory_mask: Tensor, width: int) -> Cache:
        """A cache for `width` tokens of each row, none of them read yet."""
        empty = ops.zeros((ops.shape(memory)[0], self.heads, width, self.head_size), self.compute_dtype)
        return Cache(
            targets=tuple((empty, empty) for _ in self.blocks),
            memory=tuple(block.remember(memory) for block in self.blocks),
            memory_bias=as_bias(hidden_positions(memory_mask, causal=False), self.compute_dtype),
        )

    def step(self, words: Tensor, place: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Read one more token of each row.

        Args:
            words: float32 [rows, 1, hidden].
            place: int32 scalar, the position of these tokens, from 0.
            cache: valid before that place.

        Returns: (states [rows, 1, hidden], the cache with the tokens).
        """
        hidden = self.embedded(words, place)
        columns = ops.arange(ops.shape(cache.targets[0][0])[2], dtype="int32")
        attention_bias = as_bias(later_places(ops.reshape(place, (1,)), columns), self.compute_dtype)
        attention_bias = self.with_distances(attention_bias, place)
        is_new, targets = ops.equal(columns, place), []
        for block, before, remembered in zip(self.blocks, cache.targets, cache.memory, strict=True):
            hidden, read = block.step(hidden, attention_bias, is_new, before, remembered, cache.memory_bias)
            targets.append(read)
        return self.finished(hidden), cache._replace(targets=tuple(targets))


@keras.saving.register_keras_serializable(package="keras_bert")
class EncoderDecoder(ConfiguredModel):
    """An encoder, a decoder and a head that predicts the next token, of the config's kind of model.

    Attributes:
        encoder: without a pooler. Its `embeddings.word_embeddings` are the decoder's too.
        decoder: a `Decoder`.
        lm_head: called with states and the word embeddings.

    Call arguments:
        inputs: the encoder's inputs, of the text that is read; and
            decoder_input_ids: int32 [batch, targets], the tokens of the text that is written, after
                `config.decoder_start_token_id`.
            decoder_mask: optional, int32 [batch, targets], 1 for tokens and 0 for padding. Padding on the right needs
                none, since no token sees what comes after it.
            decoder_first_place: optional, int32 [batch], the position of the decoder's first token; 0 by default.
            encoder_states: optional, [batch, seq, hidden], from `encode` for these inputs, to reuse them.

    Returns a dict:
        logits: float32 [batch, targets, vocab], of the token after each.
        decoder_states: [batch, targets, hidden].
        sequence_output: [batch, seq, hidden], the encoder's states.

    Raises:
        ValueError: a model of the config's kind has no decoder.

    Example:
        config = keras_bert.BartConfig(vocab_size=60, hidden_size=48, num_hidden_layers=2)
        model = keras_bert.EncoderDecoder(config)
        ids = np.array([[0, 7, 2]], "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
        model({**inputs, "decoder_input_ids": np.array([[2, 0]], "int32")})["logits"]      # [1, 2, 60]

        cache = model.begin(inputs, width=20)
        logits, cache = model.step(np.array([2], "int32"), 0, cache)      # [1, 60]
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        kind, policy = kind_of_config(config), self.dtype_policy
        if not kind.decodes:
            raise ValueError(f"EncoderDecoder: needs a model with a decoder. Received: {with_article(kind.title)}.")
        self.encoder = kind.make_encoder(config, with_pooler=False, dtype=policy, name="encoder")
        decoder = kind.make_decoder(config, dtype=policy, name="decoder")
        assert decoder is not None
        self.decoder = decoder
        self.lm_head: keras.layers.Layer = kind.make_token_head(config, dtype=policy, name="lm_head")
        self.build()

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Any]:
        self.require_inputs(inputs, "input_mask", "decoder_input_ids")
        memory = self.encode(inputs, training=training)
        words = self.encoder.embeddings.words(inputs["decoder_input_ids"])
        mask, first = inputs.get("decoder_mask"), inputs.get("decoder_first_place")
        first_place = 0 if first is None else first[:, None]
        states = self.decoder(words, memory, inputs["input_mask"], mask, first_place=first_place, training=training)
        return {"logits": self._logits(states), "decoder_states": states, "sequence_output": memory}

    def encode(self, inputs: Batch, training: bool = False) -> Tensor:
        """The encoder's states of the texts that are read, [batch, seq, hidden]; `encoder_states` if given."""
        states = inputs.get("encoder_states")
        return self.encoder(inputs, training=training)["sequence_output"] if states is None else states

    def begin(self, inputs: Batch, width: int) -> Cache:
        """Read texts with the encoder.

        Args:
            inputs: the encoder's inputs, with or without `encoder_states`.
            width: how many tokens may be written, the start included.

        Returns: the cache for the first `step`.
        """
        self.require_inputs(inputs, "input_mask")
        return self.decoder.begin(self.encode(inputs), inputs["input_mask"], width)

    def step(self, token_ids: Tensor, place: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Read one more token of each row.

        Args:
            token_ids: int32 [rows].
            place: int32 scalar, the position of these tokens, from 0.
            cache: from `begin` or the previous step.

        Returns: (float32 [rows, vocab], the logits of the next token; the cache with the tokens).
        """
        words = self.encoder.embeddings.words(token_ids[:, None])
        states, cache = self.decoder.step(words, ops.cast(place, "int32"), cache)
        return self._logits(states)[:, 0], cache

    def _logits(self, states: Tensor) -> Tensor:
        return self.lm_head(states, self.encoder.embeddings.word_embeddings)
