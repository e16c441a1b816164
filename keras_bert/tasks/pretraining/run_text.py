"""The text of a run, and whether the data in its folder were made from it, as `text.json` beside them records."""

import functools
import itertools
import logging
import platform
from collections.abc import Iterator
from typing import Any

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core import files, whole_files
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_if_there
from keras_bert.data.collocations import COLLOCATIONS_FILE
from keras_bert.data.corpus.documents import Corpus, require_without_written
from keras_bert.data.corpus.held_out import SIDES
from keras_bert.data.corpus.python_documentation import python_documentation
from keras_bert.data.shards.document_tokenizer import phrase_record
from keras_bert.data.shards.prepared_folder import difference, is_prepared
from keras_bert.tasks.pretraining.prepared_shards import given_folder
from keras_bert.tasks.run_data import FILE as DATA
from keras_bert.tasks.run_data import require_same_text, require_unchanged, text_difference
from keras_bert.text.marks import read_phrases
from keras_bert.training.run_folder import MESSAGES, RunFolder

_log = logging.getLogger(__name__)

FILE = "text.json"


class PythonDocumentation:
    """The Python documentation, with the members of `Corpus` that are needed here."""

    report = ""

    @functools.cached_property
    def _documents(self) -> list[str]:
        # Finding them takes seconds, and both the vocabulary and the shards are made from them.
        return list(python_documentation())

    def documents(self, shown: str = "") -> Iterator[str]:
        return iter(self._documents)

    @staticmethod
    def local_files() -> list[str]:
        return []

    @staticmethod
    def fingerprint() -> list[list[str]]:
        return [["Python", platform.python_version()]]

    @staticmethod
    def settings() -> dict[str, Any]:
        return {}

    record = settings


class PreparedText:
    """A folder that `prepare` wrote, with the members of `Corpus` that distinguish its text from another.

    Args:
        folder: the folder, whose meta.json for each side has the checksums of the shards.
    """

    def __init__(self, folder: str):
        self.folder = folder

    def fingerprint(self) -> list[list[str]]:
        names = [*(f"{side}/meta.json" for side in SIDES), COLLOCATIONS_FILE]
        paths = {name: files.join(self.folder, name) for name in names}
        return [[name, files.sha256(path)] for name, path in paths.items() if files.exists(path)]

    def settings(self) -> dict[str, Any]:
        return {}  # meta.json has them.


def corpus_of(config: PretrainConfig) -> Corpus | PythonDocumentation:
    """The recipe's text. Raises `UserError` if there is none."""
    config.require_text()
    if config.data.source == "python_documentation":
        return PythonDocumentation()
    return Corpus(config.data.files, config.data)


def require_reachable(run: RunFolder, config: PretrainConfig) -> None:
    """Refuses local paths that a TPU on another machine would have to read.

    Args:
        run: the run's folder, which holds the shards and the plans of their pairs.

    Raises:
        UserError: `--tpu` names such a TPU, and one of the paths is on this machine.
    """
    training = config.training
    if training.strategy != "tpu" or training.tpu == "local":
        return
    streams = config.data.source == "text"
    given = config.data.files if streams else [path for path in config.data.files if is_prepared(path)]
    for path in (run.path, *given):
        if not files.is_remote(path):
            raise UserError(
                f"training.tpu: with {training.tpu!r}, a TPU on another machine, the run's folder and the text or "
                f"shards that it reads need paths in a store, such as gs://. Received: {path}. Give --output, and "
                "--data, there."
            )


def require_outside(run: RunFolder, config: PretrainConfig) -> None:
    """Raises `UserError` if what a run writes would be part of its text, such as all files of the working folder."""
    written = (run.config_file, run.metrics_file, run.results_file, files.join(run.path, MESSAGES))
    require_without_written("data.files", itertools.filterfalse(is_prepared, config.data.files), written)


def require_run_text(run: RunFolder, config: PretrainConfig) -> None:
    """Refuses a run that would go on with other text than it has learned from.

    Args:
        run: the run's folder, settled.

    Raises:
        UserError: the text, the phrases or the list of bad words has changed since.
    """
    if config.data.source == "text":
        require_same_text(run, config.data.files)
    elif run.has_begun():
        prepared = given_folder(config)
        now = _made_from(config, PreparedText(prepared) if prepared else corpus_of(config))
        before = _recorded(run.data) or read_if_there(files.join(run.path, DATA))
        require_unchanged(run, _change(before, now))
        _write(run.data, before, now)  # Older versions did not.


def keep_record(run: RunFolder, config: PretrainConfig) -> None:
    """Copies the record of the text to where it outlasts the run's data, which may be removed and made again."""
    recorded, path = _recorded(run.data), files.join(run.path, DATA)
    if config.data.source != "text" and recorded and recorded != read_if_there(path):
        whole_files.write_json(path, recorded)


def remove_other_data(config: PretrainConfig, corpus: Corpus | PythonDocumentation | PreparedText, folder: str) -> None:
    """Empties a run's data folder, unless what is there was made from the same text, and records the text.

    Files are compared by name, size and `files.content_mark`, phrases and bad words by content, prepared folders by
    checksums.

    Args:
        corpus: its text.
        folder: the run's data folder; nothing was learned from it yet.

    Raises:
        UserError: the recipe's vocabulary, phrases or list of bad words are part of the text.
    """
    if isinstance(corpus, Corpus):
        corpus.require_without(config.vocabulary.file, config.data.phrases, config.data.filters.bad_words)
    before, now = _recorded(folder), _made_from(config, corpus)
    # The record is replaced last: if this is interrupted, the rest is removed at the next start.
    names = [name for name in files.list_folder(folder) if name != FILE]
    if (change := _change(before, now)) and names:
        _log.info(f"The text has changed since it was prepared ({change}). Making the run's data anew.")
        for path in (files.join(folder, name) for name in names):
            files.remove_folder(path) if files.is_folder(path) else files.remove_file(path)
    _write(folder, before, now)


def _made_from(config: PretrainConfig, corpus: Corpus | PythonDocumentation | PreparedText) -> dict[str, Any]:
    """JSON values of what the vocabulary, the shards and all counts in them depend on besides the recipe."""
    phrases = read_phrases(config.data.phrases) if config.data.phrases else ()
    return {
        "text": corpus.fingerprint(),
        "reading": corpus.settings(),
        "phrases": phrase_record(phrases, config.data.phrase_tags),
        "collocations": config.data.collocations,
    }


def _recorded(folder: str) -> dict[str, Any]:
    """What the data in a folder were made from; {} if there are none, or if an older version made them."""
    return read_if_there(files.join(folder, FILE))


def _change(before: dict[str, Any], now: dict[str, Any]) -> str:
    """What has changed, in words; empty if nothing has."""
    found = (
        (key, (text_difference if key == "text" else difference)(before[key], now[key])) for key in now if key in before
    )
    return next((f"{key}: {change}" for key, change in found if change), "")


def _write(folder: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    if now != before:
        whole_files.write_json(files.join(folder, FILE), now)
