"""The parameter table: the size of each part of a model, computed from its config, and the formulas people quote."""

import dataclasses
from collections.abc import Iterable

from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import kind_of_config
from keras_bert.models.term import term_named


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


def encoder_parts(config: BertConfig) -> list[Part]:
    """Returns the parts of the encoder, pooler included."""
    return kind_of_config(config).encoder_table(config)


def head_parts(config: BertConfig) -> list[Part]:
    """Returns the parts of the pretraining heads. A decoder that shares the word embeddings is not counted."""
    kind, H = kind_of_config(config), config.hidden_size
    of_pairs = [term_named(name).title for name in kind.pretraining_heads]
    return [*kind.heads_table(config), *(Part(f"{title} head", "2·H + 2", 2 * H + 2) for title in of_pairs)]


def bert_encoder_parts(config: BertConfig) -> list[Part]:
    """`encoder_parts` of a BERT."""
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


def bert_head_parts(config: BertConfig) -> list[Part]:
    """`head_parts` of a BERT."""
    V, H = config.vocab_size, config.hidden_size
    return [
        Part("masked LM transform", "H² + H", H * H + H),
        Part("masked LM LayerNorm", "2·H", 2 * H),
        Part("masked LM output bias", "V", V),
        *([] if config.tie_word_embeddings else [Part("masked LM decoder", "V·H", V * H)]),
    ]


def total(parts: Iterable[Part]) -> int:
    """Returns the number of parameters in all `parts`."""
    return sum(part.count for part in parts)


def weights_only(config: BertConfig) -> int:
    """Counts as tutorials do: kernels, embeddings and LayerNorm, but neither dense biases nor the pooler."""
    left_out = {"attention biases", "feed-forward biases", "pooler"}
    return sum(part.count for part in bert_encoder_parts(config) if part.name not in left_out)


def rough_estimate(config: BertConfig) -> int:
    """30k·H + 12·L·H²: a rounded vocabulary, and only the kernels of each layer, with F = 4·H."""
    return 30_000 * config.hidden_size + 12 * config.num_hidden_layers * config.hidden_size**2


def quoted_for_bert(config: BertConfig, exact: int) -> list[tuple[str, int, str]]:
    """`ModelKind.quoted_counts` of a BERT."""
    weights, rough = weights_only(config), rough_estimate(config)
    return [
        (
            "weights-only formula of tutorials",
            weights,
            f"{exact - weights:,} fewer than the encoder: omits dense biases and the pooler.",
        ),
        (
            "rough estimate 30k·H + 12·L·H²",
            rough,
            f"{abs(exact - rough):,} {'fewer' if rough < exact else 'more'}: assumes 30,000 words instead of "
            f"{config.vocab_size:,}; omits positions, segments, LayerNorm, biases and pooler.",
        ),
    ]
