"""The ways to pool an encoder's states into vectors (see `inference/pooling.py`), and what they require of a model."""

from keras_bert.config.bert import BertConfig
from keras_bert.errors import UserError

POOLINGS = ("mean", "cls", "last4", "tokens")
LAST_LAYERS = 4
FEWEST_TOKENS = 3  # [CLS], a piece, [SEP]


def check_embedding(config: BertConfig, pooling: str, max_length: int | None = None) -> None:
    """Raises `UserError` if the model cannot pool in this way, or cannot read texts of `max_length` tokens."""
    if pooling not in POOLINGS:
        raise UserError(f"pooling: needs one of {', '.join(POOLINGS)}. Received: {pooling!r}.")
    if pooling == "cls" and config.is_causal:
        raise UserError("Pooling cls: [CLS] has seen nothing of the text in a causal model. Use mean.")
    layers, positions = config.num_blocks, config.max_position_embeddings
    if pooling == "last4" and layers < LAST_LAYERS:
        raise UserError(
            f"Pooling last4: needs a model with at least {LAST_LAYERS} layers. Received: one with {layers}. Use mean."
        )
    if max_length is not None and not FEWEST_TOKENS <= max_length <= positions:
        raise UserError(
            f"max_length: needs {FEWEST_TOKENS} to {positions} tokens, the model's positions. Received: {max_length}."
        )
