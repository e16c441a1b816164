"""Signatures of a model that extracts answers from passages of any length."""

from collections.abc import Sequence

import tensorflow as tf

from keras_bert.export.network import Network
from keras_bert.export.signature import Signature, TextInputs, signatures_of_texts_and_tokens
from keras_bert.inputs.rows import PieceSpans, padded_rows, segment_starts
from keras_bert.inputs.windows import truncate
from keras_bert.tasks.question_answering.decoding import Passages, best_answers, no_answer
from keras_bert.tasks.question_answering.task import AnsweringConfig
from keras_bert.tasks.question_answering.windows import passage_windows
from keras_bert.text.vocabulary import Vocabulary


def question_answering_signatures(
    answering: AnsweringConfig, text_inputs: TextInputs, network: Network, n_best: int
) -> dict[str, Signature]:
    """`serving_default` on questions and contexts, `tokens` on the encoder's inputs.

    Outputs of `serving_default`: `answer` string [batch], "" if there is none; `start` and `end` int32 [batch], its
    offsets in the context in code points; `score` float32 [batch], the sum of its start and end logits; `null_score`
    [batch], the score of no answer; `n_best_answers` string, `n_best_starts`, `n_best_ends` int32,
    `n_best_start_logits` and `n_best_end_logits` float32, each [batch, n_best], best first, with different texts,
    padded with "" and 0 after the first `num_answers` int32 [batch]; `null_logits` float32 [batch, 2]. Outputs of
    `tokens`: `start_logits` and `end_logits` float32 [batch, seq].

    Args:
        answering: how answers are found.
        n_best: the number of answers.
    """
    # A question leaves room for at least one piece of the passage.
    special_tokens = text_inputs.vocabulary.row_pattern.special_tokens(2)
    capacity = text_inputs.reading.max_length - special_tokens
    longest_question = max(min(answering.max_question_length, capacity - 1), 0)

    def logits_of(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        states = network.encoded(inputs)["sequence_output"]
        return network.run(lambda model: model.qa_outputs(states))

    def answer(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        start_logits, end_logits = tf.unstack(logits_of(inputs), axis=-1)
        return {"start_logits": start_logits, "end_logits": end_logits}

    def answer_texts(questions: tf.Tensor, contexts: tf.Tensor) -> dict[str, tf.Tensor]:
        ids, starts, ends = text_inputs.tokenizer.tokenize_with_offsets(contexts)
        asked = truncate(PieceSpans.of(text_inputs.tokenizer.tokenize(questions)), longest_question)
        segments, windows = passage_windows(asked, PieceSpans.of(ids), capacity, answering.stride)
        inputs = padded_rows(segments, text_inputs.vocabulary, text_inputs.lengths)
        start_logits, end_logits = tf.unstack(network.by_parts(logits_of, inputs), axis=-1)
        best = best_answers(
            _passage_logits(start_logits, segments, text_inputs.vocabulary),
            _passage_logits(end_logits, segments, text_inputs.vocabulary),
            windows,
            Passages.of(contexts, starts, ends),
            answering.max_answer_length,
            n_best,
        )
        null_logits = no_answer(start_logits[:, 0], end_logits[:, 0], windows)
        return _outputs(best, null_logits, answering)

    return signatures_of_texts_and_tokens(text_inputs, answer_texts, answer, ("question", "context"))


def _passage_logits(logits: tf.Tensor, segments: Sequence[PieceSpans], vocabulary: Vocabulary) -> tf.Tensor:
    """The logits of the passage's pieces in each window, [windows, pieces], from its row's logits, [windows, seq]."""
    passages = segments[1]
    most = tf.reduce_max(tf.concat([passages.lengths, [1]], axis=0))
    starts = segment_starts(segments, vocabulary)[1][:, tf.newaxis]
    places = tf.minimum(starts + tf.range(most), tf.shape(logits)[1] - 1)
    return tf.gather(logits, places, batch_dims=1)


def _outputs(best: dict[str, tf.Tensor], null_logits: tf.Tensor, answering: AnsweringConfig) -> dict[str, tf.Tensor]:
    null_score = tf.reduce_sum(null_logits, axis=1)
    best_score = best["start_logits"][:, 0] + best["end_logits"][:, 0]
    is_null = tf.equal(best["counts"], 0)
    if answering.unanswerable:
        is_null |= null_score - best_score > answering.null_threshold
    return {
        "answer": tf.where(is_null, "", best["texts"][:, 0]),
        "start": tf.where(is_null, 0, best["starts"][:, 0]),
        "end": tf.where(is_null, 0, best["ends"][:, 0]),
        "score": tf.where(is_null, null_score, best_score),
        "null_score": null_score,
        "null_logits": null_logits,
        "num_answers": best["counts"],
        **{f"n_best_{name}": best[name] for name in ("starts", "ends", "start_logits", "end_logits")},
        "n_best_answers": best["texts"],
    }
