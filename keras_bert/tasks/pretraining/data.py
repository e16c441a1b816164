"""The data of a pretraining run: its vocabulary and shards, made once in the run's folder or by `prepare`."""

import functools
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np

from keras_bert.checkpoints.model_folder import open_model_folder, vocabulary_path
from keras_bert.config.objectives import MaskingConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.program import same_command
from keras_bert.data.collocations import PREPARE_AGAIN, read_collocations
from keras_bert.data.corpus.held_out import TRAIN, training_documents
from keras_bert.data.shards.document_tokenizer import DocumentTokenizer
from keras_bert.data.shards.prepare import ShardSettings, prepare
from keras_bert.data.shards.prepared_folder import UnfinishedWork
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.data.shards.shard_format import spaced_shards
from keras_bert.models.kind import kind_of_config, with_article
from keras_bert.tasks.pretraining.prepared_shards import (
    check_settings,
    given_folder,
    require_collocations,
    vocabulary_of_shards,
)
from keras_bert.tasks.pretraining.run_text import PreparedText, corpus_of, remove_other_data
from keras_bert.text.marks import JIEBA, ideograph_share, is_ideograph, read_phrases, require_jieba
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.tokenizers import Tokenizer, make_tokenizer
from keras_bert.text.vocabulary import Vocabulary, find_vocabulary
from keras_bert.text.vocabulary_learning import LEARNERS

_log = logging.getLogger(__name__)


def run_vocabulary(
    config: PretrainConfig, folder: str, texts: Callable[[], Iterable[str]], given: str | None = None
) -> Vocabulary:
    """The run's vocabulary; its file is made in `folder` unless it is there already.

    Args:
        folder: the run's data folder.
        texts: function () -> the training texts, from which a vocabulary is learned. Held-out text is not among them:
            a piece that only occurs there must stay unknown.
        given: the vocabulary file to use; by default `vocabulary.file`, or else that of the model in `init`.

    Raises:
        UserError: the given vocabulary does not have `model.vocab_size` rows, or its padding id or its layout of rows
            is not the model's.
    """
    if (path := find_vocabulary(folder)) is None:
        files.make_folder(folder)
        own = open_model_folder(config.init).vocabulary_file if config.init else None
        given = given or config.vocabulary.file or own
        vocabulary = _given(given, own, config.model.vocab_size) if given else _learn(config, texts())
        path = files.join(folder, vocabulary.file_name)
        vocabulary.to_file(path)
    vocabulary = Vocabulary.from_file(path)
    _require_its_padding(config, vocabulary)
    _require_its_rows(config, vocabulary)
    return vocabulary.padded(config.model.vocab_size) if config.init else vocabulary


def _require_its_padding(config: PretrainConfig, vocabulary: Vocabulary) -> None:
    """Raises `UserError` if the model counts positions from a padding id other than the vocabulary's."""
    first = config.model.first_position
    if first not in (0, vocabulary.pad_id + 1):
        has_setting = hasattr(config.model, "pad_token_id")
        remedy = f"Set model.pad_token_id={vocabulary.pad_id}, or another" if has_setting else "Set another"
        raise UserError(
            f"model.pad_token_id: needs {vocabulary.pad_id}, the id of {vocabulary.tokens[vocabulary.pad_id]} in "
            f"{vocabulary.title}. Received: {first - 1}. {remedy} vocabulary.kind."
        )


def _require_its_rows(config: PretrainConfig, vocabulary: Vocabulary) -> None:
    """Raises `UserError` if only one of model and vocabulary is XLNet's, whose rows end with <cls>."""
    if config.model.cls_is_last != (vocabulary.row_pattern.last_segment is not None):
        where = "rows that end" if config.model.cls_is_last else "no rows that end"
        raise UserError(
            f"vocabulary: needs {where} with <cls>, in a segment of its own, for "
            f"{with_article(kind_of_config(config.model).title)}. Received: those of {vocabulary.title}."
        )


def _given(path: str, own: str | None, wanted: int) -> Vocabulary:
    """The vocabulary in a file; with fewer than `wanted` pieces, it must have as many as `own`, the one of `init`."""
    vocabulary = Vocabulary.from_file(vocabulary_path(path))
    if len(vocabulary) != wanted and not (own and len(vocabulary) == len(Vocabulary.from_file(own)) < wanted):
        raise UserError(
            f"{path}: needs model.vocab_size ({wanted}) rows. Received: {len(vocabulary)}. "
            f"Set model.vocab_size={len(vocabulary)}, or give the model's own vocabulary."
        )
    return vocabulary


def _learn(config: PretrainConfig, texts: Iterable[str]) -> Vocabulary:
    wanted = config.model.vocab_size
    _log.info(f"Learning a vocabulary of {wanted:,} pieces.")
    vocabulary = LEARNERS[config.vocabulary.kind](texts, wanted, config.vocabulary.lower_case)
    if len(vocabulary) < wanted:
        _log.info(f"The text gives only {len(vocabulary):,} pieces; the model's vocabulary will have that size.")
    return vocabulary


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
    """Raises `UserError` if words are masked but the shards are of Chinese text without marks of words.

    Args:
        counts: how often each token occurs in them, int [vocab].
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
    """Raises `UserError` if words are masked in Chinese text that is not prepared and so has no marks of words.

    Args:
        names: the names of the text, for the message.
        sample: function (most) that yields arrays of ids of the text, at most `most` ids in all.
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


def prepare_run_data(config: PretrainConfig, folder: str, is_settled: bool = False) -> Tokenizer:
    """Makes the vocabulary and the shards in `folder` unless they are there already, made from the same text.

    If `data.files` is a folder written by `prepare`, its shards are used in place, with the vocabulary and casing they
    were made with.

    Args:
        folder: the run's data folder.
        is_settled: whether to use the data in the folder without comparing their text, because the run has learned from
            them or another of its processes has compared them.

    Returns: the run's tokenizer.

    Raises:
        UserError: the prepared folder, or the data in the run's folder, was made with another tokenizer than the
            recipe's; the prepared folder was made with other filters, phrases or share of validation; or there are no
            collocations to mask.
    """
    prepared = given_folder(config)
    corpus = functools.cache(lambda: corpus_of(config))  # Settled shards need no text.
    if not is_settled:
        require_collocations(config)
        remove_other_data(config, PreparedText(prepared) if prepared else corpus(), folder)

    def training_texts() -> Iterator[str]:
        return training_documents(corpus().documents("Read"), config.data.validation_share)

    given = vocabulary_of_shards(config, prepared) if prepared else None
    vocabulary = run_vocabulary(config, folder, training_texts, given)
    lower_case, prefix_space = config.vocabulary.lower_case, config.vocabulary.prefix_space
    shards = prepared or files.join(folder, "shards")
    if prepared:
        _log.info(f"Using the prepared shards in {prepared}.")
    elif not files.exists(shards) or UnfinishedWork.is_in(shards):
        _log.info("Preparing the text.")
        phrases = read_phrases(config.data.phrases) if config.data.phrases else ()
        word_marks = word_marks_for(config.masking, corpus().documents())
        tokenizer = DocumentTokenizer(
            vocabulary, lower_case, word_marks, phrases, config.data.phrase_tags, prefix_space
        )
        summary = prepare(
            corpus(),
            ShardSettings(
                tokenizer, config.data.validation_share, config.data.shard_megabytes, config.data.collocations
            ),
            shards,
            # A run has no --workers; it takes all cores.
            remedy=f"Run {same_command()} to resume where it stopped. To use fewer processes, prepare the text first "
            "with `prepare --workers N` and give its folder as --data.",
        )
        _log.info(f"{corpus().report}\n{summary}".strip())
    meta = ShardSet.open(files.join(shards, TRAIN), vocabulary, verify=False).meta
    if prepared:
        check_settings(config.data, meta, prepared)
    made_with = meta["lower_case"]
    if lower_case != made_with and not (prepared and lower_case):  # True may be just the default.
        raise UserError(
            f"{shards}: made with vocabulary.lower_case {made_with}. Received: {lower_case}. "
            "Use the setting of the shards, or run `prepare` again."
        )
    if prefix_space != spaced_shards(meta):
        raise UserError(
            f"{shards}: made with vocabulary.prefix_space {spaced_shards(meta)}. Received: {prefix_space}. Use the "
            "setting of the shards, or run `prepare` again with the vocabulary's file in the folder of the model."
        )
    return make_tokenizer(vocabulary, TokenizerSettings(made_with, prefix_space=prefix_space))


def shards_folder(config: PretrainConfig, folder: str) -> str:
    """The folder with a run's shards, a folder for each side; `folder` is its data folder."""
    return given_folder(config) or files.join(folder, "shards")


def run_collocations(config: PretrainConfig, folder: str, vocabulary: Vocabulary) -> list[tuple[int, ...]] | None:
    """The collocations of a run; None if it masks none. Raises `UserError` if they are missing or damaged."""
    if not config.masks_collocations:
        return None
    shards = shards_folder(config, folder)
    own = f"Remove {shards}: the run then prepares its text again."
    return read_collocations(shards, vocabulary, PREPARE_AGAIN if given_folder(config) else own)
