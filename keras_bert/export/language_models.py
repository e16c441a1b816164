"""Signatures of a masked LM: the most probable pieces for every [MASK]."""

import keras
import numpy as np
import tensorflow as tf

from keras_bert.export.network import Network
from keras_bert.export.signature import TOKENS, Signature, TextInputs, token_signature, without_invalid
from keras_bert.inference.generation import never_next
from keras_bert.inputs.rows import PieceSpans
from keras_bert.inputs.windows import truncate_beginning
from keras_bert.models.bert.encoder import last_state
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.text.vocabulary import MASK


def masked_lm_signatures(text_inputs: TextInputs, network: Network, top_k: int) -> dict[str, Signature]:
    """`serving_default` on strings with [MASK] in them, `tokens` on the encoder's inputs.

    Outputs: `pieces` string and `scores` float32, both [batch, masks, top_k]: for every [MASK], from left to right, the
    most probable pieces and their probabilities, padded with "" and 0; `masks` [batch] int32, the number of [MASK]s in
    a row. A [MASK] lost to truncation is not counted.

    Args:
        text_inputs: makes the model's inputs.
        network: the network of a `BertForPreTraining`.
        top_k: the number of pieces for each [MASK].
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

    return {
        "serving_default": Signature(answer_texts, (tf.TensorSpec([None], tf.string, name="text"),)),
        "tokens": token_signature(text_inputs, answer),
    }


def masked_lm_at_positions(text_inputs: TextInputs, network: Network, top_k: int) -> Signature:
    """A signature on the encoder's inputs and on where the [MASK]s are, for platforms without strings.

    Beside `TOKENS` it takes `masked_lm_positions` [batch, masks] int32. Outputs: `ids` int32 and `scores` float32, both
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
    """The logits [n, vocab] of the tokens that are predicted from states [n, hidden]."""
    return model.mlm_head(states[tf.newaxis], model.encoder.embeddings.word_embeddings)[0]


def _masked_pieces(texts: tf.Tensor, tokenizer: Tokenizer) -> PieceSpans:
    """The pieces of texts, with [MASK] as one piece; the tokenizer, like BERT's, would split it."""
    parts = tf.strings.split(texts, MASK)
    pieces = tokenizer.tokenize(parts.values)
    mask = tf.fill([tf.size(parts.values), 1], tokenizer.vocabulary.mask_id)
    # A [MASK] before every part; each text starts after the one before its first part.
    pieces = tf.concat([mask, pieces], axis=1)
    splits = tf.cast(tf.gather(pieces.row_splits, parts.row_splits), tf.int32)
    return PieceSpans(pieces.values, splits[:-1] + 1, splits[1:] - splits[:-1] - 1)


def next_token_signatures(text_inputs: TextInputs, network: Network, top_k: int) -> dict[str, Signature]:
    """`serving_default` on strings, `tokens` on the encoder's inputs.

    Outputs, all [batch, top_k]: `pieces` string, `ids` int32 and `scores` float32, the most probable pieces to follow a
    row and their probabilities among those that `generate` would add. [SEP] ends the text.

    A text becomes [CLS] and its pieces, without [SEP]; of a long one the end is read. `tokens` continues each row after
    its last token, whatever that is.

    Args:
        text_inputs: makes the model's inputs.
        network: the network of a causal `BertForPreTraining`.
        top_k: the number of pieces for each row.
    """
    vocabulary, longest = text_inputs.vocabulary, text_inputs.reading.max_length - 2
    tokens, never = tf.constant(vocabulary.tokens), never_next(vocabulary)
    penalty = np.zeros(text_inputs.config.vocab_size, np.float32)
    penalty[[*never, *range(len(vocabulary), len(penalty))]] = -np.inf

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

    return {
        "serving_default": Signature(answer_texts, (tf.TensorSpec([None], tf.string, name="text"),)),
        "tokens": token_signature(text_inputs, answer),
    }


def encoder_signatures(text_inputs: TextInputs, network: Network) -> dict[str, Signature]:
    """`serving_default` on strings, `tokens` on the encoder's inputs.

    Outputs: `pooled_output` [batch, hidden], `sequence_output` [batch, seq, hidden], and `mean_embedding`
    [batch, hidden], the mean of the sequence output over all tokens; for strings also `input_word_ids` and `input_mask`
    [batch, seq] int32, the tokens of the sequence output.

    Args:
        text_inputs: makes the model's inputs.
        network: the network of a `BertEncoder`, or of a model with an `encoder`.
    """

    def encode(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        outputs = network.encode(inputs)
        mask = tf.expand_dims(tf.cast(inputs["input_mask"], tf.float32), -1)
        # A row of nothing but padding, which only `tokens` can receive, has the mean 0.
        mean = tf.reduce_sum(outputs["sequence_output"] * mask, axis=1) / tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
        return {**outputs, "mean_embedding": mean}

    def encode_texts(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        inputs = text_inputs.from_texts(texts)
        tokens = {name: inputs[name] for name in ("input_word_ids", "input_mask")}
        return {**encode(inputs), **tokens}

    return {
        "serving_default": Signature(encode_texts, (tf.TensorSpec([None], tf.string, name="text"),)),
        "tokens": token_signature(text_inputs, encode),
    }
