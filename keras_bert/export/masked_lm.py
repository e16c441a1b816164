"""Signatures of a masked LM: the best pieces at every [MASK]."""

import tensorflow as tf

from keras_bert.export.packing import Rows
from keras_bert.export.reader import token_signature
from keras_bert.export.signature import Signature
from keras_bert.text.vocabulary import MASK


def masked_lm_signatures(reader, network, top_k):
    """`{name: Signature}`: `serving_default` on strings with [MASK] in them, `tokens` on the encoder's inputs.

    Outputs: `pieces` string and `scores` float32, both [batch, masks, top_k]: for every [MASK], from left to right, the
    most probable pieces and their probabilities; `masks` [batch] int32, how many a row has. Behind them, up to the most
    of the batch, stand "" and 0. A [MASK] that was cut off with the end of a text is not among them.

    Args:
        reader: the model's `Reader`.
        network: the `Network` of a `BertForPreTraining`.
        top_k: how many pieces.
    """
    vocabulary = reader.vocabulary
    tokens = tf.constant(vocabulary.tokens)

    def answer(inputs):
        states = network.encode(inputs)["sequence_output"]
        is_mask = tf.equal(inputs["input_word_ids"], vocabulary.mask_id) & tf.not_equal(inputs["input_mask"], 0)
        masks = tf.reduce_sum(tf.cast(is_mask, tf.int32), axis=1)
        at_masks = tf.gather_nd(states, tf.where(is_mask))
        logits = network.run(lambda model: _logits(model, at_masks))
        best, ids = tf.math.top_k(logits, min(top_k, len(vocabulary)))
        scores = tf.exp(best - tf.reduce_logsumexp(logits, axis=-1, keepdims=True))
        pieces = tf.gather(tokens, ids)
        return {
            "pieces": tf.RaggedTensor.from_row_lengths(pieces, masks, validate=False).to_tensor(""),
            "scores": tf.RaggedTensor.from_row_lengths(scores, masks, validate=False).to_tensor(0.0),
            "masks": masks,
        }

    def of_text(texts):
        return answer(reader.pieces(_masked_rows(texts, reader.tokenizer)))

    return {
        "serving_default": Signature(of_text, (tf.TensorSpec([None], tf.string, name="text"),)),
        "tokens": token_signature(reader, answer),
    }


def _logits(model, states):
    """Of the states `[masks, hidden]` at every [MASK] of the batch."""
    return model.mlm_head(states[tf.newaxis], model.encoder.embeddings.word_embeddings)[0]


def _masked_rows(texts, tokenizer):
    """`Rows` of texts, [MASK] included; the tokenizer, like BERT's, would split it."""
    parts = tf.strings.split(texts, MASK)
    pieces = tokenizer.tokenize(parts.values)
    mask = tf.fill([tf.size(parts.values), 1], tokenizer.vocabulary.mask_id)
    # One before every part; that before a text's first part is left out by beginning behind it.
    pieces = tf.concat([mask, pieces], axis=1)
    splits = tf.cast(tf.gather(pieces.row_splits, parts.row_splits), tf.int32)
    return Rows(pieces.values, splits[:-1] + 1, splits[1:] - splits[:-1] - 1)
