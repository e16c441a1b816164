"""The function from raw strings to answers: `export` writes it, TensorFlow Serving runs it."""

import contextlib
import re
import reprlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_bert.core.errors import UserError
from keras_bert.core.settings import Positive, checked
from keras_bert.export.network import FLOAT32, Network
from keras_bert.export.signature import TOKENS, Signature, TextInputs, signatures_of_texts_and_tokens, without_invalid
from keras_bert.inference.language_models import never_next
from keras_bert.inference.loading import LoadedModel
from keras_bert.inference.texts import require_numbers
from keras_bert.inputs.rows import PieceSpans
from keras_bert.inputs.windows import truncate_beginning
from keras_bert.layers.pooling import mean_of_tokens
from keras_bert.models.bert.config import MASKED, NEXT
from keras_bert.models.bert.encoder import last_state
from keras_bert.models.kind import with_article
from keras_bert.tasks.kind import kind_of_head
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.text.vocabulary import MASK

DEFAULT = "serving_default"
TOP_K = N_BEST = 5
_AT_ONCE = 32
_TRACING = threading.RLock()  # Tracing changes the types of the model's layers for a while; see `Network.run`.


class _Traced(Mapping[str, tf.types.experimental.ConcreteFunction]):
    """Signatures by name, each traced when first looked up, because predicting needs only one of them."""

    def __init__(self, signatures: Mapping[str, Signature]) -> None:
        self._signatures = signatures
        self._traced: dict[str, tf.types.experimental.ConcreteFunction] = {}

    def __getitem__(self, name: str) -> tf.types.experimental.ConcreteFunction:
        if name not in self._traced:
            with _TRACING:
                if name not in self._traced:  # Another thread may have been first.
                    self._traced[name] = self._signatures[name].traced()
        return self._traced[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._signatures)

    def __len__(self) -> int:
        return len(self._signatures)


class ServingFunction:
    """A model's signatures, each traced when first needed.

    Call it with a list of texts for each of `columns`. It returns what the exported model would, without an export: the
    outputs `{name: array}` of `serving_default`, one row per text.

    Attributes:
        signatures: the functions, by name, traced when they are first looked up.
        inputs: the inputs of each signature, in order.
        warm_up: `Signature.warm_up` of each signature.
        columns: the names of the inputs of `serving_default`.
        text_inputs: converts the inputs to those of the encoder.
    """

    signatures: Mapping[str, tf.types.experimental.ConcreteFunction]
    inputs: dict[str, tuple[tf.TensorSpec, ...]]
    columns: tuple[str, ...]
    text_inputs: TextInputs

    def __init__(self, signatures: Mapping[str, Signature], text_inputs: TextInputs, network: Network) -> None:
        self.signatures = _Traced(signatures)
        self.inputs = {name: signature.inputs for name, signature in signatures.items()}
        self.warm_up = {name: signature.warm_up for name, signature in signatures.items()}
        self.columns = tuple(spec.name for spec in self.inputs[DEFAULT])
        self.text_inputs = text_inputs
        self._network = network

    def __call__(self, *columns: Sequence) -> dict[str, np.ndarray]:
        return self.answer(DEFAULT, *columns)

    def answer(self, signature: str, *values: Sequence | np.ndarray) -> dict[str, np.ndarray]:
        """The outputs of a signature for arrays or lists in the order of `inputs[signature]`.

        Lists of texts, such as `choices`, may differ in length; shorter ones are padded with "".

        Raises:
            ValueError: there is no such signature, not a list for each of its inputs, or not of what it takes.
        """
        if signature not in self.inputs:
            raise ValueError(f"signature: needs one of {', '.join(self.inputs)}. Received: {signature!r}.")
        specs = self.inputs[signature]
        if len(values) != len(specs) or any(isinstance(value, str | bytes) for value in values):
            names, kinds = ", ".join(spec.name for spec in specs), [type(value).__name__ for value in values]
            raise ValueError(f"{signature}: needs a list for each of {names}. Received: {', '.join(kinds) or 'none'}.")
        tensors = [_tensor(value, spec) for value, spec in zip(values, specs, strict=True)]
        return {name: output.numpy() for name, output in self.signatures[signature](*tensors).items()}

    def answers_by_length(
        self, *columns: Sequence[Any], signature: str = DEFAULT, may_lack: str = ""
    ) -> list[dict[str, Any]]:
        """The outputs `{name: array}` of each row, computed in batches of rows of similar length.

        Args:
            columns: n texts, n lists of texts, or n lists of a fixed number of integers, for each input.
            may_lack: an output that is "" for rows without an answer, whose numbers are then NaN.

        Raises:
            UserError: an output is not finite.
        """
        columns = tuple(list(column) for column in columns)
        lengths = [sum(_length(value) for value in row) for row in zip(*columns, strict=True)]
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        found: dict[int, dict[str, Any]] = {}
        numbers: list[np.ndarray] = []
        for first in range(0, len(order), _AT_ONCE):
            batch = order[first : first + _AT_ONCE]
            outputs = self.answer(signature, *([column[index] for index in batch] for column in columns))
            floats = [values.reshape(len(batch), -1) for values in outputs.values() if values.dtype.kind == "f"]
            is_answered = outputs[may_lack] != b"" if may_lack else slice(None)
            numbers.extend(np.concatenate(floats, axis=1)[is_answered])
            for place, index in enumerate(batch):
                found[index] = {name: values[place] for name, values in outputs.items()}
        require_numbers(numbers)
        return [found[index] for index in range(len(order))]

    def outputs(self, signature: str) -> list[str]:
        """The names of a signature's outputs, sorted."""
        return sorted(self.signatures[signature].structured_outputs)

    @contextlib.contextmanager
    def tracked(self) -> Iterator[tf.Module]:
        """Yields the object to pass to `tf.saved_model.save` with the signatures; do not call these in the context."""
        with self._network.tracked(self.signatures.values()) as holder:
            holder.tokenizer = list(self.text_inputs.tokenizer.resources)
            yield holder


def signatures_of(bert: LoadedModel) -> ServingFunction:
    """The `serving_function` with which a model answers in Python, made once per model."""
    return bert.once("signatures", lambda: serving_function(bert))


@checked
def serving_function(
    bert: LoadedModel,
    dtype: str = FLOAT32,
    jit: bool = False,
    top_k: Positive[int] = TOP_K,
    n_best: Positive[int] = N_BEST,
    encoder_only: bool = False,
    compute: str = FLOAT32,
) -> ServingFunction:
    """The signatures of a model, traced as they are needed.

    Args:
        dtype: how weights are stored: float32, bfloat16 or float16; the computation is in float32.
        jit: whether XLA compiles the network for single rows, like `export --jit`.
        top_k: the number of candidates for each [MASK] or next token.
        n_best: the number of answers to a question about a passage; of texts written, one per beam at most.
        encoder_only: whether to return vectors, whatever head the model has.
        compute: the type of the products of the encoder's blocks, float32 or bfloat16, like `export --compute`.

    Raises:
        UserError: config.json has invalid settings for reading texts, `dtype` is no such type, `compute` does not fit
            the others, or `jit` is given for a model that writes texts.
        ValueError: `bert` is no `LoadedModel`, or `top_k` or `n_best` is not above 0.

    Example:
        function = keras_bert.serving_function(keras_bert.load("runs/demo"))
        sorted(function.signatures)
    """
    if jit and bert.head and not encoder_only and kind_of_head(bert.head).writes_texts:
        received = with_article(bert.head.architecture)
        raise UserError(f"--jit: needs a model without a decoder. Received: {received}. Leave it out.")
    text_inputs = TextInputs(bert.config, bert.tokenizer, bert.folder.reading)
    network = Network(bert.model, dtype, jit, compute)
    signatures = model_signatures(bert, text_inputs, network, top_k, n_best, encoder_only)
    return ServingFunction(signatures, text_inputs, network)


def model_signatures(
    bert: LoadedModel, text_inputs: TextInputs, network: Network, top_k: int, n_best: int, encoder_only: bool
) -> Mapping[str, Signature]:
    """The untraced signatures of a model; for the arguments see `serving_function`."""
    if bert.head and not encoder_only:
        return kind_of_head(bert.head).signatures(bert, text_inputs, network, n_best)
    predicts = None if encoder_only else bert.predicts
    if predicts == MASKED:
        return masked_lm_signatures(text_inputs, network, top_k)
    if predicts == NEXT:
        return next_token_signatures(text_inputs, network, top_k)
    return encoder_signatures(text_inputs, network)


def _length(value: str | Sequence[str | int]) -> int:
    """The number of characters in a text or a list of texts; 0 for integers."""
    return len(value) if isinstance(value, str) else sum(len(item) for item in value if isinstance(item, str))


def _tensor(values: Sequence | np.ndarray, spec: tf.TensorSpec) -> tf.Tensor:
    """The values of an input; TensorFlow would wrap integers that do not fit, and truncate an array's fractions."""
    if spec.dtype.is_integer:
        numbers, least, most = np.asarray(values), spec.dtype.min, spec.dtype.max
        is_integer = numbers.dtype.kind in "biu"
        if numbers.size and not (is_integer and least <= numbers.min() <= numbers.max() <= most):
            received = f"{numbers.min()} to {numbers.max()}" if is_integer else numbers.dtype.name
            raise ValueError(f"{spec.name}: needs integers from {least} to {most}. Received: {received}.")
    tensor = None
    with contextlib.suppress(TypeError, ValueError):
        tensor = tf.constant(_padded(values, spec), spec.dtype)
    if tensor is None or not spec.shape.is_compatible_with(tensor.shape):
        items = "lists of " * (spec.shape.rank - 1) + ("integers" if spec.dtype.is_integer else "strings")
        raise ValueError(f"{spec.name}: needs a list of {items}. Received: {reprlib.repr(values)}.")
    return tensor


def _padded(rows: Sequence | np.ndarray, spec: tf.TensorSpec) -> Sequence | np.ndarray:
    """Pads rows of texts with "" to the longest row; anything else stays unchanged."""
    if spec.dtype != tf.string or spec.shape.rank != 2 or len(set(map(len, rows))) < 2:
        return rows
    most = max(map(len, rows))
    return [[*row, *[""] * (most - len(row))] for row in rows]


def masked_lm_signatures(text_inputs: TextInputs, network: Network, top_k: int) -> dict[str, Signature]:
    """The signatures of a masked LM: `serving_default` on strings with [MASK]s, `tokens` on the encoder's inputs.

    Outputs: `pieces` string and `scores` float32, both [batch, masks, top_k]: for every [MASK], from left to right, the
    most probable pieces and their probabilities, padded with "" and 0; `masks` [batch] int32, the number of [MASK]s in
    a row. A [MASK] lost to truncation is not counted.
    """
    vocabulary = text_inputs.vocabulary
    tokens = tf.constant(vocabulary.tokens)

    def answer(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        states = network.encode(inputs)["sequence_output"]
        is_mask = tf.equal(inputs["input_word_ids"], vocabulary.mask_id) & tf.not_equal(inputs["input_mask"], 0)
        masks = tf.reduce_sum(tf.cast(is_mask, tf.int32), axis=1)
        at_masks = tf.gather_nd(states, tf.where(is_mask))
        logits = network.run(lambda model: token_logits(model, at_masks))
        best, ids = tf.math.top_k(logits, min(top_k, len(vocabulary)))
        scores = tf.exp(best - tf.reduce_logsumexp(logits, axis=-1, keepdims=True))
        pieces = tf.gather(tokens, ids)
        return {
            "pieces": tf.RaggedTensor.from_row_lengths(pieces, masks, validate=False).to_tensor(""),
            "scores": tf.RaggedTensor.from_row_lengths(scores, masks, validate=False).to_tensor(0.0),
            "masks": masks,
        }

    def answer_texts(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        return answer(text_inputs.from_pieces(_masked_pieces(texts, text_inputs.tokenizer)))

    return signatures_of_texts_and_tokens(text_inputs, answer_texts, answer)


def masked_lm_at_positions(text_inputs: TextInputs, network: Network, top_k: int) -> Signature:
    """The signature of a masked LM on the encoder's inputs and the [MASK]s' positions, for platforms without strings.

    Besides `TOKENS`, takes `masked_lm_positions` [batch, masks] int32. Outputs: `ids` int32 and `scores` float32, both
    [batch, masks, top_k], the most probable pieces at each position and their probabilities; `logits` float32
    [batch, masks, vocab]. Rows with fewer masks are padded with any position.
    """

    def answer(*tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        *row, positions = tokens
        inputs, is_valid = text_inputs.from_tokens(*row)
        states = network.encode(inputs)["sequence_output"]
        places = tf.clip_by_value(positions, 0, tf.shape(states)[1] - 1)
        at_masks = tf.gather(states, places, batch_dims=1)
        flat = tf.reshape(at_masks, [-1, states.shape[-1]])
        logits = network.run(lambda model: token_logits(model, flat))
        logits = tf.reshape(logits, tf.concat([tf.shape(positions), logits.shape[-1:]], axis=0))
        scores, ids = tf.math.top_k(tf.nn.softmax(logits), min(top_k, len(text_inputs.vocabulary)))
        return without_invalid({"ids": ids, "scores": scores, "logits": logits}, is_valid)

    positions = tf.TensorSpec([None, None], tf.int32, name="masked_lm_positions")
    return Signature(answer, (*TOKENS, positions))


def token_logits(model: keras.Model, states: tf.Tensor) -> tf.Tensor:
    """The logits [n, vocab] of the tokens predicted from states [n, hidden]."""
    return model.mlm_head(states[tf.newaxis], model.encoder.embeddings.word_embeddings)[0]


def _masked_pieces(texts: tf.Tensor, tokenizer: Tokenizer) -> PieceSpans:
    """The pieces of texts, with [MASK] as one piece; the tokenizer, like BERT's, would split it."""
    if tokenizer.vocabulary.masks != re.escape(MASK):
        texts = tf.strings.regex_replace(texts, tokenizer.vocabulary.masks, MASK)
    parts = tf.strings.split(texts, MASK)
    pieces = tokenizer.tokenize(parts.values)
    mask = tf.fill([tf.size(parts.values), 1], tokenizer.vocabulary.mask_id)
    # Puts a [MASK] before every part; each text's span skips the one before its first part.
    pieces = tf.concat([mask, pieces], axis=1)
    splits = tf.cast(tf.gather(pieces.row_splits, parts.row_splits), tf.int32)
    return PieceSpans(pieces.values, splits[:-1] + 1, splits[1:] - splits[:-1] - 1)


def next_token_signatures(text_inputs: TextInputs, network: Network, top_k: int) -> dict[str, Signature]:
    """The signatures of a left-to-right model: `serving_default` on strings, `tokens` on the encoder's inputs.

    Outputs, all [batch, top_k]: `pieces` string, `ids` int32 and `scores` float32, the most probable pieces to follow a
    row and their probabilities among those that `generate` would add. [SEP] ends the text.

    A text becomes [CLS] and its pieces, without [SEP]; a long one keeps its end. `tokens` continues each row
    after its last token, whatever that is.

    Args:
        network: the network of a causal `BertForPreTraining`.
    """
    vocabulary, longest = text_inputs.vocabulary, text_inputs.reading.max_length - 2
    tokens, never = tf.constant(vocabulary.tokens), never_next(vocabulary)
    penalty = np.zeros(len(vocabulary), np.float32)
    penalty[never] = -np.inf

    def answer(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        last = last_state(network.encode(inputs)["sequence_output"], inputs["input_mask"])
        logits = network.run(lambda model: token_logits(model, last[:, 0])) + penalty
        scores, ids = tf.math.top_k(tf.nn.softmax(logits), min(top_k, len(vocabulary) - len(never)))
        return {"pieces": tf.gather(tokens, ids), "ids": ids, "scores": scores}

    def answer_texts(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        pieces = PieceSpans.of(text_inputs.tokenizer.tokenize(texts))
        inputs = text_inputs.from_pieces(truncate_beginning(pieces, longest))
        without_sep = tf.pad(inputs["input_mask"][:, 1:], [[0, 0], [0, 1]])
        return answer({**inputs, "input_mask": without_sep})

    return signatures_of_texts_and_tokens(text_inputs, answer_texts, answer)


def encoder_signatures(text_inputs: TextInputs, network: Network) -> dict[str, Signature]:
    """The signatures of an encoder: `serving_default` on strings, `tokens` on the encoder's inputs.

    Outputs: `pooled_output` [batch, hidden], `sequence_output` [batch, seq, hidden], and `mean_embedding`
    [batch, hidden], the mean of the sequence output over all tokens; for strings also the tokens, `input_word_ids` and
    `input_mask` [batch, seq] int32.

    Args:
        network: the network of a `BertEncoder`, or of a model with an `encoder`.
    """

    def encode(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        outputs = network.encode(inputs)
        # A row of only padding, which only `tokens` can receive, gets the mean 0.
        return {**outputs, "mean_embedding": mean_of_tokens(outputs["sequence_output"], inputs["input_mask"])}

    def encode_texts(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        inputs = text_inputs.from_texts(texts)
        tokens = {name: inputs[name] for name in ("input_word_ids", "input_mask")}
        return {**encode(inputs), **tokens}

    return signatures_of_texts_and_tokens(text_inputs, encode_texts, encode)
