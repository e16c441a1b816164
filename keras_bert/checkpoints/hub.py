"""Models of the Hugging Face hub by name, `hf:NAME[@REVISION]`, downloaded into the cache of the hub's own library.

The library's cache, token (HF_TOKEN, `hf auth login`), offline mode (HF_HUB_OFFLINE) and mirror (HF_ENDPOINT) apply.
Only the config, vocabulary, tokenizer and one format of the weights are fetched, and the weights only when needed.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import sys
from collections.abc import Collection, Iterator
from types import ModuleType
from typing import Any

from keras_bert import files
from keras_bert.checkpoints import google, huggingface
from keras_bert.checkpoints.hub_name import COMMIT, HUB_NAME, PREFIX, hub_proposal
from keras_bert.checkpoints.tokenizer_settings import SENTENCEPIECE, VOCABULARY
from keras_bert.errors import UserError
from keras_bert.extras import import_extra
from keras_bert.model_kinds import google_configs
from keras_bert.text.tokenizer_json import TOKENIZER_FILES

# Statuses that say nothing about the model: the hub is down, or it limits the rate of requests.
_NO_ANSWER = (408, 429, *range(500, 600))


class HubModel:
    """A model of the hub at one commit.

    Attributes:
        name: `hf:NAME@COMMIT`, which still names this model when a newer one is published.
        repository: its name on the hub.
        folder: its folder in the cache, which has all files but the weights.
        kind: "huggingface" or "google".
        notes: lines to show the user.
    """

    name: str
    repository: str
    folder: str
    kind: str
    notes: list[str]

    def __init__(self, name: str) -> None:
        """Finds the model and fetches all files but the weights. Raises `UserError`."""
        matched = HUB_NAME.fullmatch(name)
        if not matched:
            raise UserError(f"{name}: needs the form {PREFIX}NAME or {PREFIX}NAME@REVISION.{hub_proposal(name)}")
        self._asked = name
        self._library = _library(name)
        self.repository, self._revision = matched.group(1), matched.group(2) or "main"
        try:
            self._library.utils.validate_repo_id(self.repository)
        except self._library.errors.HFValidationError as error:
            raise UserError(f"{name}: is not a name of the hub. {' '.join(str(error).split())}") from None
        self._metadata: dict[str, Any] = {}  # `huggingface_hub.RepoSibling` by file name.
        self._unreachable: str | None = None
        self.notes = []
        if not self._is_cached_whole():
            self._look_up()
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
        try:
            if google.is_google_folder(self.folder) and not huggingface.has_weights(self.folder):
                google.find_checkpoint(self.folder)
                return True
            return huggingface.has_all_weights(self.folder)
        except UserError:
            return False

    def _take_cached(self) -> bool:
        for config in (huggingface.CONFIG, *google_configs()):
            path = self._library.try_to_load_from_cache(self.repository, config, revision=self._revision)
            if isinstance(path, str):
                self._settle(os.path.dirname(path))
                return True
        return False

    def _settle(self, folder: str) -> None:
        self.folder, self._commit = folder, os.path.basename(folder)
        self.name = f"{PREFIX}{self.repository}@{self._commit}"

    def _look_up(self) -> None:
        """Asks the hub for the commit and its files; falls back to the cache if the hub does not answer."""
        try:
            commit = self._listing(self._revision)
        except _NoAnswerError as error:
            self._unreachable = str(error)
            if not self._take_cached():
                raise UserError(
                    f"{self._asked}: is not in the cache ({self._library.constants.HF_HUB_CACHE}), and the hub cannot "
                    f"be reached ({error})."
                ) from None
            if not error.is_chosen:
                self.notes.append(
                    f"The hub cannot be reached ({error}): using {self._asked} from the cache, commit {self._commit}."
                )
            return
        configs = (huggingface.CONFIG, *google_configs())
        config = next((file for file in configs if file in self._metadata), None)
        if config is None:
            held = ", ".join(sorted(self._metadata)[:8]) or "nothing"
            raise UserError(f"{self._asked}: needs {' or '.join(configs)} in the repository. It holds: {held}.")
        # By the revision that was asked for, so that the cache can resolve it offline.
        self._commit = commit
        folder = os.path.dirname(self._fetch(config, revision=self._revision))
        if os.path.basename(folder) != commit:  # Something was published after the first answer.
            self._listing(os.path.basename(folder))
        self._settle(folder)

    def _listing(self, revision: str) -> str:
        """The commit of a revision; puts its files into `_metadata`."""
        try:
            info = self._library.HfApi().model_info(
                self.repository, revision=revision, files_metadata=True, timeout=10.0
            )
        except Exception as error:  # The types depend on the library's version and its HTTP client.
            raise self._explained(error, "") from None
        self._metadata = {file.rfilename: file for file in info.siblings if "/" not in file.rfilename}
        return info.sha

    def _choose(self, names: Collection[str]) -> None:
        """Sets `kind` and the files of the weights, and fetches the other files."""
        weights = next((name for name in huggingface.WEIGHT_FILES if name in names), None)
        small: tuple[str, ...]
        of_google = [name for name in google_configs() if name in names]
        if of_google and not (huggingface.CONFIG in names and weights):
            self.kind, small = (
                "google",
                (of_google[0], VOCABULARY, *(name for name in names if name.endswith(".model"))),
            )
            self._weights = google.checkpoint_files(names, self._asked)
        else:
            self.kind, small = (
                "huggingface",
                (huggingface.CONFIG, VOCABULARY, SENTENCEPIECE, *TOKENIZER_FILES),
            )
            self._weights = [weights] if weights else []
            if not weights and not self._unreachable:
                raise UserError(
                    f"{self._asked}: needs {' or '.join(huggingface.WEIGHT_FILES[::2])} in the repository. It holds: "
                    f"{', '.join(sorted(names))}."
                )
        for file in small:
            if file in names:
                self._fetch(file)

    def _fetch(self, file: str, revision: str | None = None, shown: bool = False) -> str:
        """The path of a file, downloaded unless it is cached; `shown`: with a progress bar on a terminal."""
        cached = self._library.try_to_load_from_cache(self.repository, file, revision=self._commit)
        is_new = not isinstance(cached, str)
        if not is_new and revision is None:
            return cached
        metadata = self._metadata.get(file)
        if is_new:
            self._require_space(file, getattr(metadata, "size", None))
        try:
            with _progress_bars(shown and sys.stderr.isatty()):
                path = self._library.hf_hub_download(self.repository, file, revision=revision or self._commit)
        except Exception as error:
            raise self._explained(error, file) from None
        if is_new:
            self._check(path, metadata)
        return path

    def _require_space(self, file: str, size: int | None) -> None:
        cache = self._library.constants.HF_HUB_CACHE
        there = cache
        while not os.path.isdir(there):
            there = os.path.dirname(there) or "."
        if size and shutil.disk_usage(there).free < size:
            raise self._no_space(file, f", which takes {size / 2**20:,.0f} MiB")

    def _no_space(self, file: str, more: str = "") -> UserError:
        return UserError(
            f"{self._asked}: {self._library.constants.HF_HUB_CACHE} has no space for {file}{more}. Free some space, or "
            "set HF_HOME to a folder on another disk."
        )

    def _check(self, path: str, metadata: Any) -> None:
        """Removes a file whose hash differs from the one on the hub, and raises `UserError`.

        The library compares only sizes.
        """
        listed = getattr(metadata, "lfs", None)
        expected = listed.sha256 if listed else getattr(metadata, "blob_id", None)
        if not expected:
            return
        received = files.sha256(path) if listed else _git_hash(path)
        if received != expected:
            for place in {os.path.realpath(path), path}:
                os.unlink(place)
            raise UserError(
                f"{self._asked}: {os.path.basename(path)} does not match its hash on the hub ("
                f"{received[:12]}…, not {expected[:12]}…) and was removed. Run the same command again to refetch it."
            )

    def _explained(self, error: Exception, file: str) -> "UserError | _NoAnswerError":
        """The exception to raise for one of the library's; `file` is "" if it was not about a file."""
        errors, of_file = self._library.errors, f"{file}: " if file else ""
        status = getattr(getattr(error, "response", None), "status_code", None)
        page = f"{self._library.constants.ENDPOINT}/{self.repository}"
        if isinstance(error, errors.GatedRepoError):
            return UserError(
                f"{self._asked}: is gated. Request access on {page}, then log in with `hf auth login` or set HF_TOKEN."
            )
        if isinstance(error, errors.RevisionNotFoundError):
            return UserError(
                f"{self._asked}: the model has no revision {self._revision!r}. Give a branch, tag or commit of {page}."
            )
        if isinstance(error, errors.RepositoryNotFoundError):
            return UserError(
                f"{self._asked}: the hub has no such model, or it is private. Check the name; for a private model, "
                "log in with `hf auth login` or set HF_TOKEN."
            )
        if status in (401, 403):
            return UserError(
                f"{self._asked}: {of_file}the hub refuses access (status {status}). Is the token right? "
                "Set another with `hf auth login` or HF_TOKEN."
            )
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return self._no_space(file)
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if not file and (status is None or status in _NO_ANSWER):
            is_chosen = isinstance(error, errors.OfflineModeIsEnabled)
            return _NoAnswerError("HF_HUB_OFFLINE is set" if is_chosen else reason, is_chosen)
        return UserError(
            f"{self._asked}: {of_file}could not be fetched ({reason}). Run the same command to try again; "
            "complete files are not fetched twice."
        )


class _NoAnswerError(Exception):
    """The hub did not answer; `is_chosen` if the user turned it off (HF_HUB_OFFLINE)."""

    def __init__(self, reason: str, is_chosen: bool) -> None:
        super().__init__(reason)
        self.is_chosen = is_chosen


def _library(name: str) -> ModuleType:
    for module in ("constants", "errors", "utils"):
        import_extra(f"huggingface_hub.{module}", name)
    return import_extra("huggingface_hub", name)


@contextlib.contextmanager
def _progress_bars(shown: bool) -> Iterator[None]:
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if shown or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _git_hash(path: str) -> str:
    """Git's blob hash of a file, which the hub lists for files outside Git LFS."""
    with open(path, "rb") as stream:
        content = stream.read()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
