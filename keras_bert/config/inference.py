"""How a model is asked: how the next token is chosen, how texts become vectors, and how these are searched."""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from keras_bert.core.errors import UserError
from keras_bert.core.program import PROGRAM
from keras_bert.core.settings import Bounds, Checked, NotNegative, Positive, PositiveShare, Seed, require
from keras_bert.models.bert.config import MASKED, BertConfig
from keras_bert.models.kind import kind_of_config, with_article


@dataclass(frozen=True)
class SamplingConfig(Checked):
    """How tokens are drawn. The draws are a function of `seed` and the text.

    Attributes:
        max_tokens: maximum pieces to add.
        temperature: 0 always adds the most probable piece (greedy). Otherwise pieces are drawn: below 1 favours
            probable ones, above 1 rare ones.
        top_k: draw from this many of the most probable pieces (Fan et al. 2018); needs a temperature.
        top_p: draw from the fewest pieces with this share of the probability (Holtzman et al. 2020), after `top_k`;
            needs a temperature.
        seed: seed for the draws.
    """

    max_tokens: Positive[int] = 50
    temperature: NotNegative[float] = 0.0
    top_k: Positive[int] | None = None
    top_p: PositiveShare | None = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("top_k", "top_p"):
            given = getattr(self, key)
            require(given is None or self.temperature > 0.0, key, "a temperature above 0; greedy draws nothing", given)


@dataclass(frozen=True)
class DecodingConfig(Checked):
    """How an encoder with a decoder answers. Each setting means what it means in transformers' `generate`.

    One beam takes the most probable token each time; more beams search for the most probable answer.

    Attributes:
        max_tokens: maximum tokens to add, including the one that ends the answer.
        min_tokens: minimum tokens to add before the one that ends the answer.
        beams: how many beginnings of an answer are continued side by side.
        length_penalty: beams are compared by their log-probability, divided by their length to this power: above 0
            favours long answers, below 0 short ones.
        early_stopping: when a beam search ends: true, once as many answers as beams are complete; false, once a longer
            answer is unlikely to be better; never, once none can be better.
        n_best: how many answers to give for each row: those of the best beams.
        no_repeat_ngram: no n-gram of this many tokens occurs twice in an answer.
        first_token: the id of the token that every answer begins with.
        last_token: the id of the token in the last of `max_tokens` places, usually the one that ends an answer.
    """

    max_tokens: Positive[int] = 50
    min_tokens: NotNegative[int] = 0
    beams: Positive[int] = 1
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    n_best: Positive[int] = 1
    no_repeat_ngram: Positive[int] | None = None
    first_token: NotNegative[int] | None = None
    last_token: NotNegative[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        most = self.max_tokens
        require(self.min_tokens <= most, "min_tokens", f"at most max_tokens ({most})", self.min_tokens)
        require(self.n_best <= self.beams, "n_best", f"at most beams ({self.beams})", self.n_best)


def require_left_to_right(config: BertConfig, name: str) -> None:
    """Raises `UserError` unless a model can generate; `name` is what messages call it."""
    kind = kind_of_config(config)
    if kind.decodes:
        raise UserError(
            f"{name}: needs a left-to-right model to continue a text. Received: {with_article(kind.title)}, whose "
            "decoder writes another."
        )
    if not config.is_causal:
        instead = f", or fill in [MASK]s with {PROGRAM} fill" if config.predicts == MASKED else ""
        raise UserError(
            f"{name}: needs model.attention causal to generate. Received: {config.attention}. Train a left-to-right "
            f"model with {PROGRAM} pretrain --config left_to_right_mini{instead}."
        )


MEAN, SPARSE = "mean", "sparse"
TEXT_POOLINGS = (MEAN, "cls", "max", "last4", SPARSE)  # With a vector for each text.
POOLINGS = (*TEXT_POOLINGS, "tokens")
LAST_LAYERS = 4
FEWEST_TOKENS = 3  # [CLS], a piece, [SEP]


@dataclass(frozen=True)
class VectorConfig:
    """How a model's states become vectors of texts.

    Attributes:
        pooling: one of `POOLINGS`.
        normalize: whether vectors are scaled to the length 1.
    """

    pooling: str = MEAN
    normalize: bool = False


def check_embedding(config: BertConfig, pooling: str, max_length: int | None = None) -> None:
    """Raises `UserError` if the model cannot pool in this way, or cannot read texts of `max_length` tokens."""
    if pooling not in POOLINGS:
        raise UserError(f"pooling: needs one of {', '.join(POOLINGS)}. Received: {pooling!r}.")
    if pooling == "cls" and config.is_causal:
        raise UserError("Pooling cls: [CLS] has seen nothing of the text in a causal model. Use mean.")
    if pooling == SPARSE and config.predicts != MASKED:
        raise UserError(
            f"Pooling {SPARSE}: needs a model that predicts masked tokens. Received: one of {config.predicts} tokens. "
            "Use mean."
        )
    layers, positions = config.num_blocks, config.max_position_embeddings
    if pooling == "last4" and layers < LAST_LAYERS:
        raise UserError(
            f"Pooling last4: needs a model with at least {LAST_LAYERS} layers. Received: one with {layers}. Use mean."
        )
    if max_length is not None and max_length not in range(FEWEST_TOKENS, positions + 1):
        raise UserError(
            f"max_length: needs {FEWEST_TOKENS} to {positions} tokens, the model's positions. Received: {max_length}."
        )


def vector_width(config: BertConfig, pooling: str) -> int:
    """How many dimensions the vectors of a pooling have."""
    if pooling == SPARSE:
        return config.vocab_size
    return config.hidden_size * (LAST_LAYERS if pooling == "last4" else 1)


Precision = Literal["float32", "float16", "int8", "binary"]
FLOAT32, FLOAT16, INT8, BINARY = PRECISIONS = get_args(Precision)


def check_quantization(width: int, precision: str, size: int | None, has_ranges: bool, is_sparse: bool = False) -> None:
    """Raises `UserError` unless vectors of `width` can be cut to `size` and kept at this precision."""
    if precision not in PRECISIONS:
        raise UserError(f"precision: needs one of {', '.join(PRECISIONS)}. Received: {precision!r}.")
    if size is not None and size not in range(1, width + 1):
        raise UserError(f"size: needs 1 to {width}, the width of the vectors. Received: {size}.")
    if is_sparse and precision != FLOAT32:
        raise UserError(f"precision: needs {FLOAT32} for sparse vectors. Received: {precision}. Give a size instead.")
    if has_ranges and precision != INT8:
        raise UserError(f"ranges: needs the precision {INT8}. Received: {precision}. Leave the ranges out.")


@dataclass(frozen=True)
class RetrievalConfig(Checked):
    """How passages are searched for queries.

    Attributes:
        precision: type of the vectors' values; see `embed` or `quantize_vectors`. int8 takes the ranges of the
            passages.
        size: number of dimensions to keep, from the first on; for sparse vectors, number of values to keep, the largest
            ones.
        query_prefix: text in front of every query, such as "query: " for E5.
        passage_prefix: text in front of every passage, such as "passage: " for E5.
        top_k: how many passages to find for each query.
        skip_same_id: leave out the passage that has the query's own id, as BEIR does (ArguAna, Quora).
    """

    precision: Precision = "float32"
    size: Positive[int] | None = None
    query_prefix: str = ""
    passage_prefix: str = ""
    top_k: Annotated[int, Bounds("10 or more", min=10)] = 100
    skip_same_id: bool = False
