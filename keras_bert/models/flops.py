"""How much arithmetic a pretraining step needs, counted from the config."""


def training_flops(config, sequence_length, predictions_per_sequence):
    """FLOPs of one example's forward and backward pass in pretraining.

    A product of [m, k] and [k, n] is 2·m·k·n FLOPs. With S tokens, P predictions and, from the config, L layers,
    hidden size H, feed-forward size F and vocabulary V, the forward pass is

        L · (8·S·H² + 4·S²·H + 4·S·H·F)    projections, scores and context, feed-forward
        + P · (2·H² + 2·H·V)               masked LM transform and decoder, at the masked positions only
        + 2·H² + 4·H                       pooler and next sentence head

    and the backward pass twice that, a product for each operand. Elementwise work, LayerNorm, softmax, embedding
    lookups and the optimiser are not counted: they are what keeps a step from the rate of a bare matrix product.

    Args:
        config: a `BertConfig`.
        sequence_length: tokens of an example, padding included.
        predictions_per_sequence: masked LM predictions of an example, unused ones included.
    """
    S, P = sequence_length, predictions_per_sequence
    L, H, F, V = config.num_hidden_layers, config.hidden_size, config.intermediate_size, config.vocab_size
    layer = 8 * S * H**2 + 4 * S**2 * H + 4 * S * H * F
    masked_lm = P * (2 * H**2 + 2 * H * V)
    next_sentence = 2 * H**2 + 4 * H
    return 3 * (L * layer + masked_lm + next_sentence)
