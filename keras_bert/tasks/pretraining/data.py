"""The data of a pretraining run: its vocabulary and shards, made once in the run's folder or by `prepare`."""

import functools
import platform
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from keras_bert import files
from keras_bert.checkpoints.model_folder import vocabulary_path
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.data.corpus.documents import Corpus, reading_settings
from keras_bert.data.corpus.held_out import TRAIN, training_documents
from keras_bert.data.corpus.python_documentation import python_documentation
from keras_bert.data.shards.prepare import prepare
from keras_bert.data.shards.prepared_folder import is_prepared, vocabulary_in
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.data.shards.unfinished import UnfinishedWork
from keras_bert.errors import UserError
from keras_bert.tasks.pretraining.marks import word_marks_for
from keras_bert.tasks.pretraining.run_vocabulary import run_vocabulary
from keras_bert.text.phrases import read_phrases
from keras_bert.text.tokenizers import Tokenizer, make_tokenizer
from keras_bert.text.vocabulary import Vocabulary

# A run has no --workers; it takes all cores.
_LOST_WORKER = (
    "The same command resumes where it stopped. To use fewer processes, prepare the text first with "
    "`prepare --workers N` and give its folder as --data."
)


def prepare_run_data(config: PretrainConfig, folder: str, report: Callable[[str], object]) -> Tokenizer:
    """Makes vocab.txt and the shards in `folder` unless they are there already.

    If `data.files` is a folder written by `prepare`, its shards are used in place, with the vocabulary and casing they
    were made with.

    Args:
        config: the recipe.
        folder: the run's data folder.
        report: receives one line of text at a time.

    Returns: the run's tokenizer.

    Raises:
        UserError: the prepared folder, or the data in the run's folder, was made with another tokenizer than the
            recipe's; or the prepared folder with other filters.
    """
    prepared = _prepared_folder(config)
    corpus = functools.cache(lambda: _corpus(config))  # Shards that exist need no text.

    def training_texts() -> Iterator[str]:
        return training_documents(corpus().documents(), config.data.validation_share)

    given = _prepared_vocabulary(config, prepared) if prepared else None
    vocabulary = run_vocabulary(config, folder, training_texts, report, given)
    lower_case = config.vocabulary.lower_case
    shards = prepared or files.join(folder, "shards")
    if prepared:
        report(f"Using the prepared shards in {prepared}.")
    elif not files.exists(shards) or UnfinishedWork.is_in(shards):
        report("Preparing the text.")
        word_marks = word_marks_for(config.masking, corpus().documents())
        summary = prepare(
            corpus().documents(),
            vocabulary,
            lower_case,
            shards,
            config.data.validation_share,
            config.data.shard_megabytes,
            word_marks=word_marks,
            phrases=read_phrases(config.data.phrases) if config.data.phrases else (),
            phrase_tags=config.data.phrase_tags,
            inputs=corpus().fingerprint(),
            report=report,
            reading=corpus().settings(),
            record=corpus().record,
            remedy=_LOST_WORKER,
        )
        report(f"{corpus().report}\n{summary}".strip())
    meta = ShardSet.open(files.join(shards, TRAIN), vocabulary, verify=False).meta
    if prepared:
        _check_reading(reading_settings(config.data), meta, prepared)
    made_with = meta["lower_case"]
    if lower_case != made_with and not (prepared and lower_case):  # True is the default of a recipe that does not say.
        raise UserError(
            f"{shards}: made with vocabulary.lower_case {made_with}. Received: {lower_case}. "
            "Use the setting of the shards, or run `prepare` again."
        )
    return make_tokenizer(vocabulary, made_with)


def shards_folder(config: PretrainConfig, folder: str, side: str) -> str:
    """The folder with a run's shards of one side, `held_out.TRAIN` or `VALIDATION`; `folder` is its data folder."""
    return files.join(_prepared_folder(config) or files.join(folder, "shards"), side)


def _prepared_folder(config: PretrainConfig) -> str | None:
    """The folder written by `prepare` that the recipe's `data.files` names, if it names one."""
    if config.data.source != "files":
        return None
    prepared = next((path for path in config.data.files if is_prepared(path)), None)
    unfinished = next((path for path in config.data.files if _is_unfinished(path)), None)
    if unfinished:
        raise UserError(f"{unfinished}: `prepare` did not finish. Run its command again to resume it.")
    if prepared and len(config.data.files) > 1:
        raise UserError(
            f"data.files: needs a folder written by `prepare` to be the only entry. Received: {prepared} and "
            f"{len(config.data.files) - 1} more. Prepare all the text into one folder."
        )
    return prepared


def _is_unfinished(path: str) -> bool:
    """Whether `prepare` was interrupted here. Only in a store does it write under the final name from the start."""
    if not files.is_remote(path) or is_prepared(path):
        return False
    return UnfinishedWork.is_in(path) and files.exists(files.join(path, TRAIN))


def _prepared_vocabulary(config: PretrainConfig, prepared: str) -> str:
    """The vocabulary file in a prepared folder. Raises `UserError` if the recipe names a different vocabulary."""
    path, given = vocabulary_in(prepared), config.vocabulary.file
    assert path is not None
    if given and Vocabulary.from_file(vocabulary_path(given)).fingerprint != Vocabulary.from_file(path).fingerprint:
        raise UserError(
            f"{prepared}: made with the vocabulary in {path}. Received: {given}, which is different. "
            "Leave vocabulary.file out, or run `prepare` again with it."
        )
    return path


def _check_reading(wanted: Mapping[str, Any], meta: Mapping[str, Any], prepared: str) -> None:
    """Raises `UserError` if a recipe asks for text read or filtered otherwise than that of the prepared shards."""
    made_with = meta.get("corpus", {}).get("settings", {})
    if wanted and wanted != made_with:  # A recipe that asks for nothing takes the shards as they are.
        key = next(key for key in {**wanted, **made_with} if wanted.get(key) != made_with.get(key))
        raise UserError(
            f"{prepared}: made with data.{key} {made_with.get(key)!r}. Received: {wanted.get(key)!r}. "
            "Leave the setting out, or run `prepare` again with it."
        )


def _corpus(config: PretrainConfig) -> "Corpus | _PythonDocumentation":
    """The recipe's text."""
    config.require_text()
    return (
        _PythonDocumentation()
        if config.data.source == "python_documentation"
        else Corpus(config.data.files, config.data)
    )


class _PythonDocumentation:
    """The Python documentation, with the members of `Corpus` that are needed here."""

    report = ""
    documents = staticmethod(python_documentation)

    @staticmethod
    def fingerprint() -> list[list[str]]:
        return [["Python", platform.python_version()]]

    @staticmethod
    def settings() -> dict[str, Any]:
        return {}

    record = settings
