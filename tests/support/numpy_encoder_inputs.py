"""The encoder's inputs in NumPy, row by row: what the tests compare those of the package with."""

import numpy as np


def single_inputs(rows, vocabulary):
    """Rows of piece ids as one padded batch of single segments: [CLS] pieces [SEP].

    Args:
        rows: list of lists of ids, without special tokens.
        vocabulary: the `Vocabulary` that they are of.

    Returns: the encoder's dict, each [batch, seq] int32, `seq` the longest row's.
    """
    return _padded([[[vocabulary.cls_id, *row, vocabulary.sep_id]] for row in rows], vocabulary)


def pair_inputs(firsts, seconds, vocabulary, longest):
    """Pairs of rows as one padded batch: [CLS] first [SEP] second [SEP], segments 0 and 1.

    A pair that is too long loses pieces at the end of the longer row, one by one; of the second if both are as long
    (run_classifier.py, `_truncate_seq_pair`).

    Args:
        firsts, seconds: lists of lists of ids, without special tokens.
        vocabulary: the `Vocabulary` that they are of.
        longest: the most tokens of a pair, special tokens included.

    Returns: the encoder's dict, as `single_inputs`.
    """
    rows = []
    for first, second in zip(firsts, seconds, strict=True):
        kept_first, kept_second = pair_lengths(len(first), len(second), longest - 3)
        rows.append(
            [[vocabulary.cls_id, *first[:kept_first], vocabulary.sep_id], [*second[:kept_second], vocabulary.sep_id]]
        )
    return _padded(rows, vocabulary)


def pair_lengths(first, second, longest):
    """How many pieces are kept of two rows of these lengths."""
    if first + second <= longest:
        return first, second
    kept_first = min(first, max(longest - second, longest - longest // 2))
    return kept_first, longest - kept_first


def _padded(rows, vocabulary):
    """The encoder's dict of rows that are lists of segments."""
    lengths = np.array([sum(map(len, segments)) for segments in rows])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype("int32")
    ids, types = np.full(mask.shape, vocabulary.pad_id, "int32"), np.zeros_like(mask)
    ids[mask == 1] = np.concatenate([segment for segments in rows for segment in segments])
    types[mask == 1] = np.repeat(
        [number for segments in rows for number in range(len(segments))],
        [len(segment) for segments in rows for segment in segments],
    )
    return {"input_word_ids": ids, "input_mask": mask, "input_type_ids": types}
