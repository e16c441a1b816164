"""From pieces to what the encoder takes."""

import numpy as np


def encoder_inputs(rows, vocabulary):
    """Rows of piece ids as one padded batch of single segments: [CLS] pieces [SEP].

    Args:
        rows: list of lists of ids, without special tokens.
        vocabulary: the `Vocabulary` that they are of.

    Returns: the encoder's dict, each [batch, seq] int32, `seq` the longest row's.
    """
    rows = [[vocabulary.cls_id, *row, vocabulary.sep_id] for row in rows]
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype("int32")
    ids = np.full(mask.shape, vocabulary.pad_id, "int32")
    ids[mask == 1] = np.concatenate(rows)
    return {"input_word_ids": ids, "input_mask": mask, "input_type_ids": np.zeros_like(ids)}
