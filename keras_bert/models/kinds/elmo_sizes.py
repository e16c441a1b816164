"""The parameters and FLOPs of an ELMo-like model, computed from its config."""

from keras_bert.config.elmo import ElmoConfig
from keras_bert.models.parameters import Part


def encoder_table(config: ElmoConfig) -> list[Part]:
    """The parts of the encoder, pooler included; W is the width of a direction, H / 2."""
    V, W, L, H = config.vocab_size, config.embedding_width, config.num_hidden_layers, config.hidden_size
    return [
        Part("word embeddings", f"V·W = {V:,}·{W}", V * W),
        Part("LSTM kernels", f"{L} layers · 2 directions · 8·W²", L * 2 * 8 * W * W),
        Part("LSTM biases", f"{L} layers · 2 directions · 4·W", L * 2 * 4 * W),
        Part("pooler", "H² + H", H * H + H),
    ]


def heads_table(config: ElmoConfig) -> list[Part]:
    """The parts of the output layer, which both directions share. The decoder is the word embeddings."""
    V, W = config.vocab_size, config.embedding_width
    return [
        Part("LM transform", "W² + W", W * W + W),
        Part("LM LayerNorm", "2·W", 2 * W),
        Part("LM output bias", "V", V),
    ]


def training_flops(config: ElmoConfig, sequence_length: int) -> int:
    """The FLOPs of the forward and backward pass of one example in pretraining; see `models.flops.training_flops`.

    With S tokens, the forward pass is, for each of the two directions,

        S · L · 16·W²              the four gates, from the input and from the state before
        + S · (2·W² + 2·W·V)       the LM's transform and decoder, at every position
    """
    S, L, W, V = sequence_length, config.num_hidden_layers, config.embedding_width, config.vocab_size
    return 3 * 2 * S * (L * 16 * W**2 + 2 * W**2 + 2 * W * V)
