"""The size of each part of a model and the FLOPs of its training, computed from its config."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import kind_of_config
from keras_bert.models.term import term_named

POOLER = "pooler"  # The name of that part in every kind.


@dataclasses.dataclass
class Part:
    """One part of the model.

    Attributes:
        name: the name to show.
        product: the number of parameters as a product, such as `H² + H`.
        count: the number of parameters.
    """

    name: str
    product: str
    count: int


def embedding_parts(config: BertConfig, has_segments: bool = True) -> list[Part]:
    """The parts of the embeddings, whose width is E where it may differ from H."""
    V, E, H = config.vocab_size, config.embedding_width, config.hidden_size
    P, T = config.first_position + config.max_position_embeddings, config.type_vocab_size
    letter = "E" if config.maps_embeddings else "H"
    return [
        Part("word embeddings", f"V·{letter} = {V:,}·{E}", V * E),
        Part("position embeddings", f"{P}·{letter}", P * E),
        *([Part("segment embeddings", f"{T}·{letter}", T * E)] if has_segments else []),
        Part("embedding LayerNorm", f"2·{letter}", 2 * E),
        *([Part("mapping of embeddings", "E·H + H", E * H + H)] if config.maps_embeddings else []),
    ]


def block_parts(config: BertConfig) -> list[Part]:
    """The parts of BERT's blocks and pooler."""
    H, L, F = config.hidden_size, config.num_hidden_layers, config.intermediate_size
    return [
        Part("attention kernels", f"{L} layers · 4·H²", L * 4 * H * H),
        Part("attention biases", f"{L} layers · 4·H", L * 4 * H),
        Part("attention LayerNorm", f"{L} layers · 2·H", L * 2 * H),
        Part("feed-forward kernels", f"{L} layers · 2·H·{F:,}", L * 2 * H * F),
        Part("feed-forward biases", f"{L} layers · (H + {F:,})", L * (H + F)),
        Part("feed-forward LayerNorm", f"{L} layers · 2·H", L * 2 * H),
        Part(POOLER, "H² + H", H * H + H),
    ]


def masked_lm_parts(config: BertConfig) -> list[Part]:
    """The parts of BERT's masked LM head."""
    V, E, H = config.vocab_size, config.embedding_width, config.hidden_size
    transform, letter = ("H·E + E", "E") if config.maps_embeddings else ("H² + H", "H")
    return [
        Part("masked LM transform", transform, H * E + E),
        Part("masked LM LayerNorm", f"2·{letter}", 2 * E),
        Part("masked LM output bias", "V", V),
        *([] if config.tie_word_embeddings else [Part("masked LM decoder", f"V·{letter}", V * E)]),
    ]


def encoder_parts(config: BertConfig) -> list[Part]:
    """The parts of the encoder, pooler included."""
    return kind_of_config(config).encoder_table(config)


def head_parts(config: BertConfig) -> list[Part]:
    """The parts of the pretraining heads. A decoder that shares the word embeddings is not counted."""
    kind, H = kind_of_config(config), config.hidden_size
    of_pairs = [term_named(name).title for name in kind.pretraining_heads]
    return [*kind.heads_table(config), *(Part(f"{title} head", "2·H + 2", 2 * H + 2) for title in of_pairs)]


def whole_model(config: BertConfig) -> int:
    """The number of parameters of an encoder without pooler, and of its pretraining heads or its decoder."""
    encoder = (part for part in encoder_parts(config) if part.name != POOLER)
    return total(encoder) + total(head_parts(config))


def total(parts: Iterable[Part]) -> int:
    """The number of parameters in all `parts`."""
    return sum(part.count for part in parts)


def training_flops(
    config: BertConfig, sequence_length: int, predictions_per_sequence: int, recurrence: int | None = None
) -> int:
    """The FLOPs of the forward and backward pass of one example in pretraining.

    A product of [m, k] and [k, n] is 2·m·k·n FLOPs. With S tokens, P predictions and, from the config, L layers,
    hidden size H, feed-forward size F and vocabulary V, the forward pass is

        L · (8·S·H² + 4·S²·H + 4·S·H·F)    projections, scores and context, feed-forward
        + P · (2·H·E + 2·E·V)              masked LM transform and decoder, at the masked positions only
        + 2·H² + 4·H                       pooler and a head of two classes, even if it is not trained

    where E is the width of the word embeddings, H in BERT. ALBERT's mapping of them to H adds 2·S·E·H, and its L counts
    the blocks that a token passes through, whether or not they share weights. The backward pass takes twice that, one
    product for each operand. Elementwise operations, LayerNorm, softmax, embedding lookups and the optimizer are not
    counted: they keep a step below the rate of a bare matrix product. Other heads add `Term.flops`.

    Args:
        sequence_length: tokens per example, padding included.
        predictions_per_sequence: masked LM predictions per example, unused ones included.
        recurrence: the FLOPs of the forward pass of the layer that replaces self-attention in a block, if any.
    """
    S, P = sequence_length, predictions_per_sequence
    L, H, F, V = config.num_blocks, config.hidden_size, config.intermediate_size, config.vocab_size
    E = config.embedding_width
    attention = 8 * S * H**2 + 4 * S**2 * H if recurrence is None else recurrence
    layer = attention + 4 * S * H * F
    mapping = 2 * S * E * H if config.maps_embeddings else 0
    masked_lm = P * (2 * H * E + 2 * E * V)
    pooled = 2 * H**2 + 4 * H
    return 3 * (L * layer + mapping + masked_lm + pooled)


def text_to_text_flops(config: Any, read: int, written: int, W: int, M: int, G: int) -> int:
    """The FLOPs of the forward and backward pass of one example of an encoder-decoder; see `training_flops`.

    With S tokens read, P written and D layers of the decoder, the forward pass is

        L · (8·S·H·W + 4·S²·W + 2·M·S·H·F)                 the encoder
        + D · (8·P·H·W + 4·P²·W)                           the decoder's self-attention
        + D · (4·P·H·W + 4·S·H·W + 4·P·S·W + 2·M·P·H·G)    attention to S states, feed-forward
        + P · 2·H·V                                        the output layer

    Args:
        read, written: S and P.
        W: the width of all heads.
        M: the number of matrices in a feed-forward network.
        G: the decoder's feed-forward size.
    """
    S, P, H, V = read, written, config.hidden_size, config.vocab_size
    L, D, F = config.num_hidden_layers, config.decoder_layers, config.intermediate_size
    encoder = L * (8 * S * H * W + 4 * S**2 * W + 2 * M * S * H * F)
    decoder = D * (12 * P * H * W + 4 * P**2 * W + 4 * S * H * W + 4 * P * S * W + 2 * M * P * H * G)
    return 3 * (encoder + decoder + P * 2 * H * V)


def unread_flops(config: BertConfig, sequence_length: int, read: int) -> int:
    """The part of `training_flops` that the last block saves if only the states of `read` tokens are read.

    Each other token saves 4·H² for query and output, 4·S·H for scores and context, and 4·H·F for the feed-forward
    network; keys and values are needed for all.
    """
    S, H, F = sequence_length, config.hidden_size, config.intermediate_size
    return 3 * (S - read) * (4 * H**2 + 4 * S * H + 4 * H * F)
