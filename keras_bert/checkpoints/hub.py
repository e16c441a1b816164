"""Models of the Hugging Face hub by name, `hf:NAME[@REVISION]`.

Only the config, vocabulary, tokenizer and one format of the weights are fetched, and the weights only when needed.
"""

import os
import re
from collections.abc import Collection

from keras_bert.checkpoints import google, huggingface, sentence_transformers
from keras_bert.checkpoints.generation import GENERATION
from keras_bert.checkpoints.hub_repository import HubRepository
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath
from keras_bert.models.kind import google_configs
from keras_bert.text.tokenizer_files import TOKENIZER_FILES
from keras_bert.text.vocabulary import Vocabulary, vocabulary_kinds

PREFIX = "hf:"

_NAME = r"[\w.-]+(?:/[\w.-]+)?"
# The model's name and its revision; without a revision, the one published now.
HUB_NAME = re.compile(rf"{PREFIX}({_NAME})(?:@([^\s@]+))?", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
_BARE = re.compile(rf"({_NAME})(?:@[^\s@]+)?", re.ASCII)
_WEB = re.compile(rf"(?:https?://huggingface\.co/|hf://)({_NAME})/?", re.ASCII)


def is_hub_name(path: StrPath) -> bool:
    """Whether `path` has the form of a hub name, `hf:…`."""
    return os.fspath(path).startswith(PREFIX)


def names_commit(path: StrPath) -> bool:
    """Whether this is a hub name with a commit, which always names the same model."""
    matched = HUB_NAME.fullmatch(os.fspath(path))
    return bool(matched and COMMIT.fullmatch(matched.group(2) or ""))


def is_web_address(path: StrPath) -> bool:
    """Whether this is the address of a model's page on the hub, which `files` would take for a remote folder."""
    return bool(_WEB.fullmatch(os.fspath(path)))


def hub_repository(name: str | None) -> str | None:
    """NAME of `hf:NAME[@REVISION]`; None for a folder."""
    return name.removeprefix(PREFIX).partition("@")[0] if name and is_hub_name(name) else None


def shown_name(path: StrPath) -> str:
    """A MODEL argument as a public page shows it: of a path, only the last component."""
    return os.fspath(path) if is_hub_name(path) else os.path.basename(os.path.abspath(path))


def hub_proposal(path: StrPath) -> str:
    """A sentence, with a leading space, that suggests `hf:NAME` if `path` may name a model of the hub; else ""."""
    path = os.fspath(path)
    web = _WEB.fullmatch(path)
    if web:
        return f" Give a model of the Hugging Face hub as {PREFIX}{web.group(1)}."
    name = _BARE.fullmatch(path)
    if not name or set(name.group(1)) <= set("./") or os.path.lexists(path.partition("/")[0]):
        return ""
    return f" If you mean the model of that name on the Hugging Face hub: {PREFIX}{path}."


class HubModel(HubRepository):
    """A model of the hub at one commit.

    Attributes:
        name: `hf:NAME@COMMIT`, which still names this model when a newer one is published.
        folder: its folder in the cache, which has all files but the weights.
        kind: "huggingface" or "google".
    """

    name: str
    folder: str
    kind: str

    def __init__(self, name: str) -> None:
        """Finds the model and fetches all files but the weights. Raises `UserError`."""
        matched = HUB_NAME.fullmatch(name)
        if not matched:
            raise UserError(f"{name}: needs the form {PREFIX}NAME or {PREFIX}NAME@REVISION.{hub_proposal(name)}")
        super().__init__(name, matched.group(1), matched.group(2) or "main")
        if not self._is_cached_whole():
            self._fetch_config()
        names = set(self._metadata) or set(files.list_folder(self.folder))
        self._choose(names)

    def fetch_weights(self) -> None:
        """Fetches the weights unless they are cached. Raises `UserError`."""
        if not self._weights:
            raise UserError(
                f"{self._asked}: its weights are not in the cache ({self.folder}), and the hub cannot be reached "
                f"({self._unreachable}). Run this once online, without HF_HUB_OFFLINE."
            )
        for file in self._weights:
            path = self._fetch(file, shown=True)
            if file.endswith(".json"):
                for shard in huggingface.shards(path):
                    self._fetch(shard, shown=True)

    def _is_cached_whole(self) -> bool:
        """Takes the model from the cache, without a request, if a commit was asked for and all its files are cached."""
        if not COMMIT.fullmatch(self._revision) or not self._take_cached():
            return False
        # transformers never asks for the file that says how vectors are made.
        if not self._is_known(sentence_transformers.MODULES):
            return False
        try:
            if google.is_google_folder(self.folder) and not huggingface.has_weights(self.folder):
                google.find_checkpoint(self.folder)
                return True
            return huggingface.has_all_weights(self.folder)
        except UserError:
            return False

    def _take_cached(self) -> bool:
        for config in (huggingface.CONFIG, *google_configs()):
            if path := self._cached(config, self._revision):
                self._settle(os.path.dirname(path))
                return True
        return False

    def _settle(self, folder: str) -> None:
        self.folder, self._commit = folder, os.path.basename(folder)
        self.name = f"{PREFIX}{self.repository}@{self._commit}"

    def _fetch_config(self) -> None:
        if not self._look_up():
            return
        configs = (huggingface.CONFIG, *google_configs())
        config = next((file for file in configs if file in self._metadata), None)
        if config is None:
            held = ", ".join(sorted(self._metadata)[:8]) or "nothing"
            raise UserError(f"{self._asked}: needs {' or '.join(configs)} in the repository. It holds: {held}.")
        # By the revision that was asked for, so that the cache can resolve it offline.
        commit, folder = self._commit, os.path.dirname(self._fetch(config, revision=self._revision))
        if os.path.basename(folder) != commit:  # Something was published after the first answer.
            self._listing(os.path.basename(folder))
        self._settle(folder)
        if sentence_transformers.MODULES not in self._metadata and not self._is_known(sentence_transformers.MODULES):
            self._record_absence(sentence_transformers.MODULES)

    def _listing(self, revision: str) -> str:
        commit = super()._listing(revision)
        is_read = {name: "/" not in name or name in sentence_transformers.FILES for name in self._metadata}
        self._metadata = {name: file for name, file in self._metadata.items() if is_read[name]}
        return commit

    def _choose(self, names: Collection[str]) -> None:
        """Sets `kind` and the files of the weights, and fetches the other files."""
        weights = next((name for name in huggingface.WEIGHT_FILES if name in names), None)
        of_google = [name for name in google_configs() if name in names]
        if of_google and not (huggingface.CONFIG in names and weights):
            self.kind = "google"
            small = [of_google[0], Vocabulary.file_name, *(name for name in names if name.endswith(".model"))]
            self._weights = google.checkpoint_files(names, self._asked)
        else:
            self.kind = "huggingface"
            of_kinds = (name for kind in vocabulary_kinds() for name in (kind.file_name, *kind.other_files))
            vocabularies = dict.fromkeys(of_kinds)
            small = [huggingface.CONFIG, *vocabularies, *TOKENIZER_FILES, GENERATION, *sentence_transformers.FILES]
            self._weights = [weights] if weights else []
            if not weights and not self._unreachable:
                raise UserError(
                    f"{self._asked}: needs {' or '.join(huggingface.WEIGHT_FILES[::2])} in the repository. It holds: "
                    f"{', '.join(sorted(names))}."
                )
        for file in small:
            if file in names:
                self._fetch(file)
