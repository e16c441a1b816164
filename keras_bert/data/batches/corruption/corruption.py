"""Makes an encoder's inputs and a decoder's targets from rows of text."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.config.corruption import (
    DELETION,
    FRAGMENT,
    INFILLING,
    MASKING,
    ROTATION,
    SENTENCES,
    SENTINELS,
    CorruptionConfig,
)
from keras_bert.config.objectives import MaskingConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.corruption.fragment import fragment_length, mask_fragment
from keras_bert.data.batches.corruption.restored import (
    delete_tokens,
    infill_spans,
    mask_tokens,
    permute_sentences,
    rotate,
    sentence_ends,
)
from keras_bert.data.batches.corruption.sentinels import replace_spans, targets_length
from keras_bert.data.batches.corruption.texts import Texts, drawn_below, either, framed, stream_bits, unframed
from keras_bert.data.batches.masking import example_keys
from keras_bert.text.vocabulary import Vocabulary

_WHICH = 48  # The random stream that chooses the corruption.
_SENTINEL = re.compile(r"<extra_id_(\d+)>|\[unused(\d+)\]")


class Written(NamedTuple):
    """The texts of the encoder and the decoder.

    Attributes:
        read: the encoder's, without special tokens around them.
        targets: the decoder's, with the special tokens that it predicts (none for MASS).
        start: the id of the token from which the decoder predicts the first target.
        first_place: int32 [batch], the position of the first target in a row; None means 0.
    """

    read: Texts
    targets: Texts
    start: int
    first_place: tf.Tensor | None = None


class Corruption:
    """Corrupts the texts of rows.

    Args:
        masking: what replaces the tokens of MASS's fragment.
        decoder_start: the id from which the decoder predicts the first token.

    Raises:
        UserError: the vocabulary lacks what the corruption needs.
    """

    def __init__(
        self,
        corruption: CorruptionConfig,
        masking: MaskingConfig,
        vocabulary: Vocabulary,
        seed: int,
        decoder_start: int,
    ):
        self._settings = corruption
        self._masking = masking
        self._vocabulary = vocabulary
        self._seed = seed
        self._start = decoder_start
        self._pattern = vocabulary.row_pattern
        makers = {FRAGMENT: self._fragment, SENTINELS: self._sentinels}
        self._make = makers.get(corruption.kinds[0], self._restored)
        self._sentinel_ids = sentinel_ids(vocabulary) if SENTINELS in corruption.kinds else []
        self._sentence_ends = sentence_ends(vocabulary)
        require_marks(corruption, vocabulary, self._sentinel_ids, self._sentence_ends)

    def __call__(
        self, input_word_ids: tf.Tensor, lengths: tf.Tensor, example_ids: tf.Tensor, epoch: tf.Tensor | int = 0
    ) -> dict[str, tf.Tensor]:
        """Corrupts a batch.

        Args:
            input_word_ids: int32 [batch, seq] with static `seq`; rows hold a text between special tokens, and padding.
                To tell equal tokens apart, a multiple of the vocabulary's size may be added to each.
            lengths: int32 [batch], tokens of each row that are not padding.
            example_ids: int64 [batch].
            epoch: int, scalar or int64 [batch].

        Returns:
            `input_word_ids` and `input_mask`, int32 [batch, seq]: the corrupted text between special tokens.
            `decoder_input_ids` and `target_ids` int32, `target_weights` float32, each [batch, targets]: at each place
            the decoder reads the previous target. `targets` is `seq` if the decoder restores the text; for MASS, the
            `fragment_length` of the longest text; for T5, its `targets_length` and the end tokens.
            `decoder_first_place` int32 [batch], for MASS: the position in the row of the decoder's first target.
        """
        texts = unframed(input_word_ids, lengths, len(self._pattern.start), len(self._pattern.end))
        written = self._make(texts, example_keys(self._seed, epoch, example_ids))
        read, targets = self._framed(written.read), written.targets
        batch = {
            "input_word_ids": read.word_ids,
            # A row that only fills the batch has one token, so that attention has something to attend to.
            "input_mask": tf.sequence_mask(tf.maximum(read.lengths, 1), read.width, tf.int32),
            "decoder_input_ids": tf.pad(targets.word_ids[:, :-1], [(0, 0), (1, 0)], constant_values=written.start),
            "target_ids": targets.word_ids,
            "target_weights": tf.cast(targets.is_token, tf.float32),
        }
        if written.first_place is not None:
            batch["decoder_first_place"] = written.first_place
        return batch

    def _framed(self, texts: Texts) -> Texts:
        return framed(texts, self._pattern.start, self._pattern.end, self._vocabulary.pad_id)

    def _restored(self, texts: Texts, keys: tf.Tensor) -> Written:
        settings, mask_id = self._settings, self._vocabulary.mask_id
        share = settings.share_of
        corruptions: dict[str, Callable[[Texts], Texts]] = {
            MASKING: lambda given: mask_tokens(given, keys, share(MASKING), mask_id),
            DELETION: lambda given: delete_tokens(given, keys, share(DELETION)),
            INFILLING: lambda given: infill_spans(given, keys, share(INFILLING), settings.span_length, mask_id),
            SENTENCES: lambda given: permute_sentences(given, keys, self._sentence_ends),
            ROTATION: lambda given: rotate(given, keys),
        }
        chosen = [corruptions[kind] for kind in settings.kinds]
        if settings.applied == "one":
            read = _one_of(texts, keys, [corrupt(texts) for corrupt in chosen])
        else:
            read = texts
            for corrupt in chosen:
                read = corrupt(read)
        return Written(read, self._framed(texts), self._start)

    def _fragment(self, texts: Texts, keys: tf.Tensor) -> Written:
        share, mask_id = self._settings.share_of(FRAGMENT), self._vocabulary.mask_id
        size = len(self._vocabulary)
        read, fragments, starts = mask_fragment(texts, keys, share, self._masking, mask_id, size)
        return Written(read, fragments, mask_id, starts + len(self._pattern.start))

    def _sentinels(self, texts: Texts, keys: tf.Tensor) -> Written:
        share, span_length = self._settings.share_of(SENTINELS), self._settings.span_length
        read, targets = replace_spans(texts, keys, share, span_length, self._sentinel_ids)
        return Written(read, framed(targets, (), self._pattern.end, self._vocabulary.pad_id), self._start)


def _one_of(texts: Texts, keys: tf.Tensor, corrupted: list[Texts]) -> Texts:
    """Draws one of several corrupted versions of each text, uniformly."""
    which = drawn_below(stream_bits(keys, _WHICH, 1), len(corrupted))
    for number, made in enumerate(corrupted):
        texts = either(which == number, made, texts)
    return texts


def most_targets(corruption: CorruptionConfig, sequence_length: int) -> int:
    """The decoder's width for rows of `sequence_length` with a special token at either end, given enough sentinels."""
    length, kind = sequence_length - 2, corruption.kinds[0]
    if kind == FRAGMENT:
        return fragment_length(length, corruption.share_of(kind))
    if kind == SENTINELS:
        return targets_length(length, corruption.share_of(kind), corruption.span_length, length + 2) + 1
    return sequence_length


def sentinel_ids(vocabulary: Vocabulary) -> list[int]:
    """The ids of T5's sentinels, `<extra_id_0>` and so on, or else of the free slots `[unused0]`, in this order."""
    found = [(match, index) for index, token in enumerate(vocabulary.tokens) if (match := _SENTINEL.fullmatch(token))]
    return [index for _, index in sorted((int(match[1] or match[2]), index) for match, index in found)]


def require_marks(corruption: CorruptionConfig, vocabulary: Vocabulary, sentinels: list[int], ends: np.ndarray) -> None:
    """Raises `UserError` unless a vocabulary has the sentinels, or the full stops, that a corruption needs."""
    if SENTINELS in corruption.kinds and len(sentinels) < 2:
        raise UserError(
            f"objective.corruption.kinds: {SENTINELS} needs a vocabulary with two or more of T5's sentinels "
            f"(<extra_id_0> …) or free slots ([unused0] …). Received: {len(sentinels)}. Learn one with vocab --unused "
            "100, or use other corruptions."
        )
    if SENTENCES in corruption.kinds and not ends.any():
        raise UserError(
            f"objective.corruption.kinds: {SENTENCES} needs a vocabulary with a full stop, at which sentences end. "
            "Received: none. Use other corruptions."
        )
