"""Files of a repository on the Hugging Face hub, downloaded into the cache of the hub's own library.

The library's cache, token (HF_TOKEN, `hf auth login`), offline mode (HF_HUB_OFFLINE) and mirror (HF_ENDPOINT) apply.
"""

import contextlib
import errno
import hashlib
import inspect
import os
import shutil
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.imports import import_extra
from keras_bert.core.terminal_bar import Bar

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoSibling

# Statuses that say nothing about a repository: the hub is down, or it limits the rate of requests.
_NO_ANSWER = (408, 429, *range(500, 600))


class HubRepository:
    """A repository of the hub, whose files are fetched one by one, each checked against its hash.

    Args:
        asked: what the user wrote, for messages.
        repository: its name on the hub.
        revision: a branch, a tag or a commit.

    Attributes:
        notes: lines to show the user.

    Class attributes:
        repository_type: what the hub calls such a repository: "model" or "dataset".
        noun: what messages call it.
    """

    repository_type: ClassVar[str] = "model"
    noun: ClassVar[str] = "model"

    def __init__(self, asked: str, repository: str, revision: str) -> None:
        self._asked, self.repository, self._revision = asked, repository, revision
        self._library = _library(asked)
        try:
            self._library.utils.validate_repo_id(repository)
        except self._library.errors.HFValidationError as error:
            raise UserError(f"{asked}: is not a name of the hub. {' '.join(str(error).split())}") from None
        self._metadata: dict[str, RepoSibling] = {}  # By file name.
        self._commit = ""
        self._unreachable: str | None = None
        self.notes: list[str] = []

    def _look_up(self) -> bool:
        """Asks the hub for the commit and its files; returns False if the hub does not answer and the cache is used.

        Raises `UserError` if the cache does not have the repository either.
        """
        try:
            self._commit = self._listing(self._revision)
            return True
        except _NoAnswerError as error:
            self._unreachable = str(error)
            if not self._take_cached():
                raise UserError(
                    f"{self._asked}: is not in the cache ({self._library.constants.HF_HUB_CACHE}), and the hub cannot "
                    f"be reached ({error}). Run this once online."
                ) from None
            if not error.is_chosen:
                self.notes.append(
                    f"The hub cannot be reached ({error}): using {self._asked} from the cache, commit {self._commit}."
                )
            return False

    def _take_cached(self) -> bool:
        """Takes the repository from the cache and sets its commit; returns whether it is there."""
        raise NotImplementedError

    def _cached(self, file: str, revision: str) -> str | None:
        """The path of a file in the cache, None if it is not there."""
        path = self._library.try_to_load_from_cache(
            self.repository, file, revision=revision, repo_type=self.repository_type
        )
        return path if isinstance(path, str) else None

    def _is_known(self, file: str) -> bool:
        """Whether the cache has a file of the commit, or a record that the repository has none."""
        found = self._library.try_to_load_from_cache(
            self.repository, file, revision=self._commit, repo_type=self.repository_type
        )
        return found is not None

    def _record_absence(self, file: str) -> None:
        """Asks for a file that the commit lacks, so that the library records its absence in the cache."""
        with contextlib.suppress(self._library.errors.EntryNotFoundError, OSError):
            self._library.hf_hub_download(self.repository, file, revision=self._commit, repo_type=self.repository_type)

    def _listing(self, revision: str) -> str:
        """The commit of a revision; puts its files into `_metadata`."""
        try:
            info = self._library.HfApi().repo_info(
                self.repository, revision=revision, repo_type=self.repository_type, files_metadata=True, timeout=10.0
            )
        except Exception as error:  # The types depend on the library's version and its HTTP client.
            raise self._explained(error, "") from None
        self._metadata = {file.rfilename: file for file in info.siblings}
        return info.sha

    def _fetch(self, file: str, revision: str | None = None, shown: bool = False) -> str:
        """The path of a file, downloaded unless it is cached; `shown`: with a progress bar."""
        cached = self._cached(file, self._commit)
        is_new = cached is None
        if cached is not None and revision is None:
            return cached
        metadata = self._metadata.get(file)
        if is_new:
            self._require_space(file, metadata.size if metadata else None)
        try:
            download = self._library.hf_hub_download
            own = shown and "tqdm_class" in inspect.signature(download).parameters  # Not before version 1.
            with _progress_bars(shown and sys.stderr.isatty()):
                path = download(
                    self.repository,
                    file,
                    revision=revision or self._commit,
                    repo_type=self.repository_type,
                    **({"tqdm_class": Bar} if own else {}),
                )
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

    def _check(self, path: str, metadata: "RepoSibling | None") -> None:
        """Removes a file whose hash differs from the one on the hub, and raises `UserError`.

        The library compares only sizes.
        """
        listed = metadata.lfs if metadata else None
        expected = listed.sha256 if listed else metadata.blob_id if metadata else None
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
        """The exception to raise instead of the library's; `file` is "" if that was not about a file."""
        errors, of_file = self._library.errors, f"{file}: " if file else ""
        status = getattr(getattr(error, "response", None), "status_code", None)
        folder = "" if self.repository_type == "model" else f"{self.repository_type}s/"
        page = f"{self._library.constants.ENDPOINT}/{folder}{self.repository}"
        if isinstance(error, errors.GatedRepoError):
            return UserError(
                f"{self._asked}: is gated. Request access on {page}, then log in with `hf auth login` or set HF_TOKEN."
            )
        if isinstance(error, errors.RevisionNotFoundError):
            return UserError(
                f"{self._asked}: the {self.noun} has no revision {self._revision!r}. Give a branch, tag or commit of "
                f"{page}."
            )
        if isinstance(error, errors.RepositoryNotFoundError):
            return UserError(
                f"{self._asked}: the hub has no such {self.noun}, or it is private. Check the name; for a private one, "
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
