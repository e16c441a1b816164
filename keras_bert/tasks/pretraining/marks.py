"""The marks that a run's masks need in its text: of Chinese words, and of phrases."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np

from keras_bert.config.objectives import MaskingConfig
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.errors import UserError
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.word_marks import JIEBA, ideograph_share, is_ideograph, require_jieba

# From this share of ideographs on, a text counts as Chinese.
CHINESE_SHARE = 0.01
_DOCUMENTS_LOOKED_AT, _TOKENS_LOOKED_AT = 2000, 100_000


def word_marks_for(masking: MaskingConfig, documents: Iterable[str]) -> str | None:
    """The `word_marks` to prepare a text with: `"jieba"` if words are masked and the text is Chinese, None otherwise.

    Looks at the first 2,000 documents. Raises `UserError` if jieba is needed and not installed.
    """
    if masking.units == {"token"} or ideograph_share(islice(documents, _DOCUMENTS_LOOKED_AT)) < CHINESE_SHARE:
        return None
    require_jieba()
    return JIEBA


def require_word_marks(shards: ShardSet, counts: np.ndarray, masking: MaskingConfig, vocabulary: Vocabulary) -> None:
    """Raises `UserError` if words are masked, and the shards are of Chinese text and do not mark its words.

    Args:
        shards: the training shards.
        counts: how often each token occurs in them, int [vocab].
        masking: the recipe's.
        vocabulary: the vocabulary of the shards.
    """
    share = counts[is_ideograph(vocabulary)].sum() / max(counts.sum(), 1)
    if masking.units != {"token"} and not shards.has_word_marks and share >= CHINESE_SHARE:
        raise UserError(
            f"{shards.folder}: needs marks of Chinese words for {_setting(masking)}: {share:.0%} of its tokens are "
            "Chinese characters. Received: none. Run `prepare` with --whole-words jieba, start a new run from raw "
            "text, or set masking.unit=token and masking.validation_unit=token."
        )


def require_no_chinese_words(
    names: str, sample: Callable[[int], Iterator[np.ndarray]], masking: MaskingConfig, vocabulary: Vocabulary
) -> None:
    """Raises `UserError` if words are masked in Chinese text that is not prepared, so that no words are marked.

    Args:
        names: the names of the text, for the message.
        sample: function (most) that yields arrays of ids of the text, at most `most` ids in all.
        masking: the recipe's.
        vocabulary: the vocabulary of the ids.
    """
    if masking.units == {"token"}:
        return
    ids = np.concatenate([np.zeros(0, np.int64), *sample(_TOKENS_LOOKED_AT)])
    share = is_ideograph(vocabulary)[ids].mean() if ids.size else 0.0
    if share >= CHINESE_SHARE:
        raise UserError(
            f"{names}: needs marks of Chinese words for {_setting(masking)}: {share:.0%} of its tokens are Chinese "
            "characters. Received: data.source text, which marks none. Set data.source=files."
        )


def _setting(masking: MaskingConfig) -> str:
    """The setting that masks words."""
    return (
        f"masking.unit {masking.unit}"
        if masking.unit != "token"
        else f"masking.validation_unit {masking.validation_unit}"
    )
