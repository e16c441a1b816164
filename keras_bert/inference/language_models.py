"""Continues texts with a left-to-right model, and fills in [MASK]s with a masked LM.

A text is continued one token at a time through a causal encoder that caches the keys and values of earlier tokens. A
row has its full width from the start, so a step is traced only once. Positions beyond the last token are masked,
and overwritten when their tokens are known.
"""

import dataclasses
import re
import threading
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import tensorflow as tf
from keras import ops
from scipy.special import softmax

from keras_bert.config.inference import SamplingConfig, require_left_to_right
from keras_bert.core.errors import UserError
from keras_bert.core.program import PROGRAM
from keras_bert.core.settings import Positive, checked
from keras_bert.inference.texts import encoder_inputs, require_numbers, text_list
from keras_bert.inputs.rows import doubling_lengths
from keras_bert.layers.decoder_block import KeysAndValues, written
from keras_bert.layers.tensors import Tensor
from keras_bert.layers.visibility import as_bias, later_places
from keras_bert.models.bert.config import BOTH, MASKED, NEXT, PERMUTED, REPLACED, BertConfig
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.text.vocabulary import MASK, Vocabulary

# The keys and values of each block.
Cache: TypeAlias = list[KeysAndValues]


def begin(encoder: BertEncoder, word_ids: Tensor) -> tuple[Tensor, Cache]:
    """Reads whole rows.

    Args:
        encoder: a causal encoder.
        word_ids: int32 [batch, width], with anything after the last token.

    Returns: (the last hidden states [batch, width, hidden], the cache); both are invalid after the last token.
    """
    places = ops.arange(ops.shape(word_ids)[1], dtype="int32")
    return _read(encoder, encoder.embeddings(word_ids, ops.zeros_like(word_ids)), places, None)


def extend(encoder: BertEncoder, word_ids: Tensor, place: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
    """Reads one more token of each row.

    Args:
        word_ids: int32 [batch, width], with the new tokens.
        place: int32 scalar, the position of the new tokens.
        cache: valid up to that position.

    Returns: (the last hidden states at that position, [batch, 1, hidden]; the cache with the new tokens).
    """
    # Embedding the whole row is a small part of a step, and works with the embeddings as they are.
    embedded = encoder.embeddings(word_ids, ops.zeros_like(word_ids))
    places = ops.reshape(place, (1,))
    return _read(encoder, ops.take(embedded, places, axis=1), places, cache)


def _read(encoder: BertEncoder, hidden: Tensor, places: Tensor, cache: Cache | None) -> tuple[Tensor, Cache]:
    """Runs the embedded tokens at `places` [n] through all blocks: (hidden states [batch, n, hidden], the cache)."""
    width = ops.shape(cache[0][0])[2] if cache else ops.shape(hidden)[1]
    columns = ops.arange(width, dtype="int32")
    attention_bias = as_bias(later_places(places, columns), encoder.compute_dtype)
    is_new = ops.equal(columns, places[-1])
    read: Cache = []
    for number, block in enumerate(encoder.blocks):
        query, *new = block.attention.project(block.attention_input(hidden))
        key, value = written(cache[number], new, is_new) if cache else new
        read.append((key, value))
        attended, _ = block.attention.attend(query, key, value, attention_bias)
        hidden = block.after_attention(hidden, attended)
    return encoder.after_blocks(hidden), read


@dataclasses.dataclass
class Continuation:
    """A text continued by a model.

    Attributes:
        text: the beginning as given.
        pieces: the pieces added.
        continued: both as one text.
        has_ended: whether the model ended the text with [SEP], rather than reaching the length limit.
    """

    text: str
    pieces: list[str]
    continued: str
    has_ended: bool


class TextGenerator:
    """Continues texts, one token at a time.

    Args:
        model: a causal model.
        name: the name of the model in messages.

    Raises:
        UserError: the model is not causal.
    """

    def __init__(self, model: BertForPreTraining, tokenizer: Tokenizer, name: str = "model") -> None:
        require_left_to_right(model.config, name)
        self._reader = CachedReader(model)
        self._tokenizer = tokenizer
        self._positions = model.config.max_position_embeddings
        self._never = never_next(tokenizer.vocabulary)
        self._one_at_a_time = threading.Lock()  # The reader holds a row.

    def __call__(self, text: str, sampling: SamplingConfig | None = None) -> Continuation:
        """Continues a text until [SEP], `sampling.max_tokens` or the model's last position.

        Raises:
            UserError: the text fills the model's positions, or the model's outputs are not finite.
        """
        with self._one_at_a_time:
            return self._continued(text, sampling or SamplingConfig())

    def _continued(self, text: str, sampling: SamplingConfig) -> Continuation:
        vocabulary = self._tokenizer.vocabulary
        ids = first_ids(self._tokenizer, text, self._positions)
        rng = np.random.default_rng(np.random.SeedSequence((sampling.seed, *ids)))
        most = min(sampling.max_tokens, self._positions - len(ids))
        added: list[int] = []
        logits, has_ended = self._reader.begin(ids, most), False
        while True:
            require_numbers([logits], "texts")
            allowed = logits.astype(np.float64)
            allowed[self._never] = -np.inf
            token = chosen_token(allowed, sampling, rng)
            if token == vocabulary.sep_id:
                has_ended = True
                break
            added.append(token)
            if len(added) == most:
                break
            logits = self._reader.extend(token)
        pieces = [vocabulary.tokens[index] for index in added]
        return Continuation(text, pieces, vocabulary.continued(text, pieces), has_ended)


def never_next(vocabulary: Vocabulary) -> list[int]:
    """The ids of the tokens that are never added to a text."""
    return [vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.mask_id]


def first_ids(tokenizer: Tokenizer, text: str, positions: int) -> list[int]:
    """The first tokens of the row of a text to continue: [CLS] and its pieces.

    Raises `UserError` if they leave no room in the model's positions.
    """
    ids = [tokenizer.vocabulary.cls_id, *tokenizer.tokenize([text]).to_list()[0]]
    if len(ids) >= positions:
        raise UserError(
            f"The text needs at most {positions - 2} pieces, to leave room for [CLS] and another piece. "
            f"Received: {len(ids) - 1}. Shorten it."
        )
    return ids


class CachedReader:
    """Reads a row token by token with a causal model, caching keys and values, and gives the next token's logits."""

    def __init__(self, model: BertForPreTraining) -> None:
        self._lengths = doubling_lengths(model.config.max_position_embeddings)

        def begun(word_ids: tf.Tensor, last: tf.Tensor) -> tuple[tf.Tensor, Cache]:
            states, cache = begin(model.encoder, word_ids)
            return logits(tf.gather(states, last[tf.newaxis], axis=1)), cache

        def extended(word_ids: tf.Tensor, place: tf.Tensor, cache: Cache) -> tuple[tf.Tensor, Cache]:
            states, cache = extend(model.encoder, word_ids, place, cache)
            return logits(states), cache

        def logits(states: tf.Tensor) -> tf.Tensor:
            return model.mlm_head(states, model.encoder.embeddings.word_embeddings)[0, 0]

        # Traced once for each of the few widths of a row.
        self._begun, self._extended = (tf.function(function, autograph=False) for function in (begun, extended))

    def begin(self, ids: Sequence[int], most: int) -> np.ndarray:
        """Reads the first tokens of a row, and returns the logits of the next: float32 [vocab].

        Args:
            ids: the tokens, [CLS] included.
            most: how many tokens may follow.
        """
        width = next(length for length in self._lengths if length >= len(ids) + most)
        self._row, self._length = np.zeros((1, width), np.int32), len(ids)
        self._row[0, : len(ids)] = ids
        logits, self._cache = self._begun(tf.constant(self._row), tf.constant(len(ids) - 1))
        return logits.numpy()

    def extend(self, token: int) -> np.ndarray:
        """Reads one more token of the row, and returns the logits of the next: float32 [vocab]."""
        self._row[0, self._length] = token
        logits, self._cache = self._extended(tf.constant(self._row), tf.constant(self._length), self._cache)
        self._length += 1
        return logits.numpy()


def chosen_token(logits: np.ndarray, sampling: SamplingConfig, rng: np.random.Generator) -> int:
    """Chooses the next token's id by its logits, float64 [vocab]; see `SamplingConfig`. Ties go to the lower id."""
    if sampling.temperature == 0.0:
        return int(np.argmax(logits))
    order = np.argsort(-logits, kind="stable")[: sampling.top_k]
    shares = np.cumsum(softmax(logits[order] / sampling.temperature))
    if sampling.top_p is not None:
        shares = shares[: np.searchsorted(shares, sampling.top_p) + 1]
    drawn = np.searchsorted(shares, rng.random() * shares[-1], side="right")
    return int(order[min(drawn, len(shares) - 1)])


# For models that cannot fill in [MASK]s: what they predict, and how to use them instead.
_OTHERS = {
    REPLACED: f"which tokens were replaced. Fine-tune it on a task: {PROGRAM} finetune --task NAME --init MODEL",
    PERMUTED: f"permuted tokens. Fine-tune it on a task: {PROGRAM} finetune --task NAME --init MODEL",
    NEXT: f"next tokens. Continue texts with it: {PROGRAM} generate",
    BOTH: f"next tokens and previous ones. Train a tagger on its states: {PROGRAM} finetune --task ner "
    "--features weighted_all --init MODEL",
}

# [(piece, probability)], best first.
Candidates: TypeAlias = list[tuple[str, float]]


@dataclasses.dataclass
class Filling:
    """The best pieces at every [MASK] of one text.

    Attributes:
        text: the text as given.
        candidates: for each [MASK], from left to right, `[(piece, probability)]`, best first. Each [MASK] is predicted
            with the others still masked.
        filled: the text with the best piece filled in at each [MASK].
    """

    text: str
    candidates: list[Candidates]
    filled: str


@checked
def fill_masks(
    model: BertForPreTraining, tokenizer: Tokenizer, texts: Sequence[str], top_k: Positive[int] = 5
) -> list[Filling]:
    """Predicts the [MASK]s of each text.

    Args:
        texts: texts with at least one [MASK] each.

    Raises:
        UserError: the model does not predict masked tokens, or a text has no [MASK] or is longer than the model's
            maximum length.
        ValueError: `texts` is not a list of texts, or `top_k` is not above 0.
    """
    texts = text_list(texts)
    if model.config.predicts != MASKED:
        raise UserError(
            f"Filling a {MASK} needs a model that sees both sides of it. Received: one that predicts "
            f"{_OTHERS[model.config.predicts]}"
        )
    vocabulary = tokenizer.vocabulary
    return [_fill(model, vocabulary, text, masked_ids(tokenizer, text, model.config), top_k) for text in texts]


def masked_ids(tokenizer: Tokenizer, text: str, config: BertConfig) -> list[int]:
    """Tokenizes a text with [MASK]s. The tokenizer, like BERT's, would split a literal [MASK] into three words.

    Raises `UserError` if the text has no [MASK] or is longer than the model's maximum length.
    """
    parts = re.split(tokenizer.vocabulary.masks, text)
    if len(parts) == 1:
        raise UserError(f"The text needs at least one {MASK}. Received: {text!r}.")
    ids: list[int] = []
    for index, pieces in enumerate(tokenizer.tokenize(parts).to_list()):
        ids += [tokenizer.vocabulary.mask_id] * (index > 0) + pieces
    if len(ids) + 2 > config.max_position_embeddings:
        raise UserError(
            f"The text needs at most {config.max_position_embeddings} tokens, [CLS] and [SEP] included. "
            f"Received: {len(ids) + 2}. Shorten it."
        )
    return ids


def _fill(model: BertForPreTraining, vocabulary: Vocabulary, text: str, ids: list[int], top_k: int) -> Filling:
    inputs = encoder_inputs([ids], vocabulary)
    positions = np.flatnonzero(inputs["input_word_ids"][0] == vocabulary.mask_id).astype("int32")
    inputs["masked_lm_positions"] = positions[None]
    candidates = best_pieces(model(inputs)["mlm_logits"][0], vocabulary, top_k)
    # Does not replace [MASK] in the text, because the best piece may be [MASK] itself.
    filled, *parts = re.split(vocabulary.masks, text)
    for best, part in zip(candidates, parts, strict=True):
        filled = vocabulary.appended(filled, best[0][0]) + part
    return Filling(text, candidates, filled)


def best_pieces(logits: np.ndarray, vocabulary: Vocabulary, top_k: int) -> list[Candidates]:
    """Returns the `top_k` most probable pieces for each row of `logits` [rows, vocab]."""
    return [
        [(vocabulary.tokens[index], float(row[index])) for index in np.argsort(-row, kind="stable")[:top_k]]
        for row in softmax(np.asarray(logits, "float64"), axis=-1)
    ]
