"""The parameter table: every part of a BERT counted from its config, beside the formulas people quote."""

import dataclasses


@dataclasses.dataclass
class Part:
    """`count` parameters in one part of the model, and the product that gives them."""

    name: str
    product: str
    count: int


def encoder_parts(config):
    """The encoder with its pooler, part by part (`BertConfig` -> list of `Part`)."""
    V, H, L = config.vocab_size, config.hidden_size, config.num_hidden_layers
    F, P, T = config.intermediate_size, config.max_position_embeddings, config.type_vocab_size
    return [
        Part("word embeddings", f"V·H = {V:,}·{H}", V * H),
        Part("position embeddings", f"{P}·H", P * H),
        Part("segment embeddings", f"{T}·H", T * H),
        Part("embedding LayerNorm", "2·H", 2 * H),
        Part("attention kernels", f"{L} layers · 4·H²", L * 4 * H * H),
        Part("attention biases", f"{L} layers · 4·H", L * 4 * H),
        Part("attention LayerNorm", f"{L} layers · 2·H", L * 2 * H),
        Part("feed-forward kernels", f"{L} layers · 2·H·{F:,}", L * 2 * H * F),
        Part("feed-forward biases", f"{L} layers · (H + {F:,})", L * (H + F)),
        Part("feed-forward LayerNorm", f"{L} layers · 2·H", L * 2 * H),
        Part("pooler", "H² + H", H * H + H),
    ]


def head_parts(config):
    """The two pretraining heads; the decoder is the word embeddings again and counts once."""
    V, H = config.vocab_size, config.hidden_size
    return [
        Part("masked LM transform", "H² + H", H * H + H),
        Part("masked LM LayerNorm", "2·H", 2 * H),
        Part("masked LM output bias", "V", V),
        Part("next sentence head", "2·H + 2", 2 * H + 2),
    ]


def total(parts):
    return sum(part.count for part in parts)


def weights_only(config):
    """The tutorials' count: kernels, embeddings and LayerNorm, without dense biases and pooler."""
    left_out = {"attention biases", "feed-forward biases", "pooler"}
    return sum(part.count for part in encoder_parts(config) if part.name not in left_out)


def rough_estimate(config):
    """30k·H + 12·L·H²: the vocabulary rounded, and of each layer only the kernels, with F = 4·H."""
    return 30_000 * config.hidden_size + 12 * config.num_hidden_layers * config.hidden_size**2
