"""The shards that a recipe names instead of text, in a folder that `prepare` wrote, and whether they fit it."""

from collections.abc import Mapping
from typing import Any

from keras_bert.checkpoints.model_folder import vocabulary_path
from keras_bert.config.pretraining import DataConfig, PretrainConfig
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.data.collocations import COLLOCATIONS_FILE, PREPARE_AGAIN
from keras_bert.data.corpus.documents import reading_settings
from keras_bert.data.corpus.held_out import TRAIN
from keras_bert.data.shards.document_tokenizer import phrase_record
from keras_bert.data.shards.prepared_folder import UnfinishedWork, is_prepared
from keras_bert.text.marks import read_phrases
from keras_bert.text.vocabulary import Vocabulary, find_vocabulary


def given_folder(config: PretrainConfig) -> str | None:
    """The folder written by `prepare` that the recipe's `data.files` names, if it names one.

    Raises:
        UserError: the folder is not finished, or not the only entry.
    """
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


def require_collocations(config: PretrainConfig) -> None:
    """Raises `UserError` if collocations are to be masked, but neither prepared folder nor text will have any."""
    if not config.masks_collocations:
        return
    prepared = given_folder(config)
    if prepared and not files.exists(files.join(prepared, COLLOCATIONS_FILE)):
        raise UserError(
            f"{prepared}: needs {COLLOCATIONS_FILE}, which lists what masking.unit pmi masks. Received: a folder "
            f"without it. {PREPARE_AGAIN}"
        )
    if not prepared and not config.data.collocations:
        raise UserError(
            "data.collocations: needs a number for masking.unit pmi, which masks collocations of the text. Received: "
            "0. Set data.collocations=40000."
        )


def vocabulary_of_shards(config: PretrainConfig, prepared: str) -> str:
    """The vocabulary file in a prepared folder. Raises `UserError` if the recipe names a different vocabulary."""
    path, given = find_vocabulary(prepared), config.vocabulary.file
    assert path is not None
    if given and Vocabulary.from_file(vocabulary_path(given)).fingerprint != Vocabulary.from_file(path).fingerprint:
        raise UserError(
            f"{prepared}: made with the vocabulary in {path}. Received: {given}, which is different. "
            "Leave vocabulary.file out, or run `prepare` again with it."
        )
    return path


def check_settings(data: DataConfig, meta: Mapping[str, Any], prepared: str) -> None:
    """Compares a recipe's settings with those that the prepared shards were made with.

    A recipe that asks for nothing takes the shards as they are. `data.shard_megabytes` is not compared: it changes how
    the text is divided into files, not the text.

    Args:
        data: the recipe's `data` section.
        meta: the `meta.json` of the shards; older ones do not have the share of validation.
        prepared: the folder, for the message.

    Raises:
        UserError: the recipe asks for text that is read, filtered, marked or held out differently.
    """
    wanted, made_with = reading_settings(data), meta.get("corpus", {}).get("settings", {})
    if wanted and wanted != made_with:
        key = next(key for key in {**wanted, **made_with} if wanted.get(key) != made_with.get(key))
        raise _refusal(prepared, key, repr(made_with.get(key)), repr(wanted.get(key)))
    marks = meta.get("phrase_marks") or {"phrases": 0, "tags": []}
    if data.phrases:
        given = phrase_record(read_phrases(data.phrases))
        if given["sha256"] != marks.get("sha256"):
            raise _refusal(prepared, "phrases", _described(marks), f"{data.phrases}, {_described(given)}")
    if data.phrase_tags and set(data.phrase_tags) != set(marks["tags"]):
        raise _refusal(prepared, "phrase_tags", repr(marks["tags"]), repr(data.phrase_tags))
    if data.collocations not in (0, count := meta.get("collocations", 0)):
        raise _refusal(prepared, "collocations", repr(count), repr(data.collocations))
    share = meta.get("validation_share", data.validation_share)
    if data.validation_share not in (share, DataConfig.validation_share):
        raise _refusal(prepared, "validation_share", repr(share), repr(data.validation_share))


def _is_unfinished(path: str) -> bool:
    """Whether `prepare` was interrupted here. It writes under the final name from the start only in a store."""
    if not files.is_remote(path) or is_prepared(path):
        return False
    return UnfinishedWork.is_in(path) and files.exists(files.join(path, TRAIN))


def _described(marks: Mapping[str, Any]) -> str:
    """The phrases of a `phrase_record` in words."""
    return f"{marks['phrases']:,} phrases, SHA-256 {marks['sha256'][:12]}…" if marks["phrases"] else "none"


def _refusal(prepared: str, key: str, made_with: str, received: str) -> UserError:
    return UserError(
        f"{prepared}: made with data.{key} {made_with}. Received: {received}. Leave the setting out, or run `prepare` "
        "again with it."
    )
