"""Makes the model's inputs and predictions from rows of text, by `objective.tokens`."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig
from keras_bert.data.batches.corruption.corruption import Corruption
from keras_bert.data.batches.masking import DynamicMasking
from keras_bert.data.batches.packing import PREDICTIONS
from keras_bert.data.batches.permutations import Permutations
from keras_bert.models.bert.config import DECODED, PERMUTED, REPLACED
from keras_bert.text.vocabulary import Vocabulary

# A function of (word ids [batch, seq], lengths [batch], example ids [batch], epoch, continuation, phrases), with the
# arguments of a `DynamicMasking`, that returns features of a batch.
Predict = Callable[..., dict[str, tf.Tensor]]


def make_predictions(
    objective: ObjectiveConfig,
    masking: MaskingConfig,
    max_predictions_per_seq: int,
    vocabulary: Vocabulary,
    seed: int,
    token_counts: npt.NDArray[np.integer] | None = None,
    decoder_start: int | None = None,
    collocations: Sequence[Sequence[int]] | None = None,
) -> Predict:
    """The `Predict` function for an objective.

    Args:
        max_predictions_per_seq, vocabulary, seed, token_counts, collocations: as for `DynamicMasking`.
        decoder_start: as for `Corruption`.
    """
    if objective.tokens == DECODED:
        if decoder_start is None:
            raise ValueError(f"decoder_start: needed for tokens {DECODED}. Received: None.")
        corrupt = Corruption(objective.corruption, masking, vocabulary, seed, decoder_start)
        return lambda word_ids, lengths, ids, epoch, *marks: corrupt(word_ids, lengths, ids, epoch)
    if objective.tokens in PREDICTIONS:
        of_all = PREDICTIONS[objective.tokens]
        return lambda word_ids, lengths, *of_masks: of_all(word_ids, lengths, vocabulary)
    if objective.tokens == PERMUTED:
        return Permutations(masking, max_predictions_per_seq, vocabulary, seed)
    mask = DynamicMasking(masking, max_predictions_per_seq, vocabulary, seed, token_counts, collocations)
    if objective.tokens == REPLACED:
        return lambda word_ids, lengths, ids, epoch, *marks: {
            **mask(word_ids, lengths, ids, epoch, *marks),
            "replacement_draws": mask.draws(ids, epoch),
        }
    return mask
