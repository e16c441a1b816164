"""Signatures of a left-to-right model: how a text may go on."""

import numpy as np
import tensorflow as tf

from keras_bert.export.masked_lm import token_logits
from keras_bert.export.network import Network
from keras_bert.export.signature import Signature
from keras_bert.export.text_inputs import TextInputs, token_signature
from keras_bert.inference.generation import never_next
from keras_bert.inputs.pieces import PieceSpans
from keras_bert.inputs.truncation import truncate_beginning
from keras_bert.models.encoder import last_state


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
