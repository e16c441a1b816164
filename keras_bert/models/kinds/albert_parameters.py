"""The parameter table of an ALBERT: what is shared counts once."""

from keras_bert.config.albert import AlbertConfig
from keras_bert.models.parameters import Part


def encoder_table(config: AlbertConfig) -> list[Part]:
    """`ModelKind.encoder_table` of an ALBERT."""
    V, E, H = config.vocab_size, config.embedding_size, config.hidden_size
    F, P, T = config.intermediate_size, config.max_position_embeddings, config.type_vocab_size
    attentions, ffns = (groups * config.inner_group_num for groups in (config.attention_groups, config.ffn_groups))
    return [
        Part("word embeddings", f"V·E = {V:,}·{E}", V * E),
        Part("position embeddings", f"{P}·E", P * E),
        Part("segment embeddings", f"{T}·E", T * E),
        Part("embedding LayerNorm", "2·E", 2 * E),
        Part("mapping of embeddings", "E·H + H", E * H + H),
        Part("attention kernels", f"{attentions} of {config.num_blocks} · 4·H²", attentions * 4 * H * H),
        Part("attention biases", f"{attentions} · 4·H", attentions * 4 * H),
        Part("attention LayerNorm", f"{attentions} · 2·H", attentions * 2 * H),
        Part("feed-forward kernels", f"{ffns} of {config.num_blocks} · 2·H·{F:,}", ffns * 2 * H * F),
        Part("feed-forward biases", f"{ffns} · (H + {F:,})", ffns * (H + F)),
        Part("feed-forward LayerNorm", f"{ffns} · 2·H", ffns * 2 * H),
        Part("pooler", "H² + H", H * H + H),
    ]


def heads_table(config: AlbertConfig) -> list[Part]:
    """`ModelKind.heads_table` of an ALBERT."""
    V, E, H = config.vocab_size, config.embedding_size, config.hidden_size
    return [
        Part("masked LM transform", "H·E + E", H * E + E),
        Part("masked LM LayerNorm", "2·E", 2 * E),
        Part("masked LM output bias", "V", V),
        *([] if config.tie_word_embeddings else [Part("masked LM decoder", "V·E", V * E)]),
        Part("sentence order head", "2·H + 2", 2 * H + 2),
    ]
