"""Data sets of the Hugging Face hub by name, `hf:datasets/ORG/NAME[/CONFIG][@REVISION][:SPLIT]`: the files of a split.

As in the library `datasets`, the repository's README.md lists the files (`configs`); if it does not, their names show
the split. Scripts are not run.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from keras_bert.checkpoints.hub_repository import HubRepository
from keras_bert.config.pretraining import HUB_PREFIX
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.patterns import fits
from keras_bert.data.corpus.text_lines import plain_ending

PREFIX = f"{HUB_PREFIX}datasets/"
_NAME = r"[\w.-]+"
_ENTRY = re.compile(rf"{PREFIX}({_NAME}(?:/{_NAME})?)(?:/({_NAME}))?(?:@([^\s@:]+))?(?::({_NAME}))?", re.ASCII)
_FILE = re.compile(rf"{PREFIX}({_NAME}(?:/{_NAME})?)@([0-9a-f]{{40}})/(.+)", re.ASCII)
_FORM = f"{PREFIX}ORG/NAME[/CONFIG][@REVISION][:SPLIT]"
_README = "README.md"
_FRONT_MATTER = re.compile(r"---\s*\n(.*?\n)---\s*\n", re.DOTALL)
_TRAIN = "train"
_SPLIT_WORDS = {
    _TRAIN: ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_SHARD = re.compile(r"\d+-of-(\d+)")
DESCRIPTIONS = (_README, "dataset_infos.json", "dataset_info.json", "dataset_dict.json")
_SHOWN = 12

_log = logging.getLogger(__name__)


def hub_files(entry: str, endings: Iterable[str]) -> tuple[str, list[str]]:
    """The files of a split, fetched unless they are cached.

    Args:
        entry: the data set's name; the default split is the only one, or else `train`.
        endings: the endings of files that can be read.

    Returns:
        (the data set's name with its commit and split; its files as `hf:datasets/ORG/NAME@COMMIT/FILE`, which mean the
        same content on any machine, and which `local_file` turns into paths).

    Raises:
        UserError: there is no such data set or split, or it cannot be fetched.
    """
    matched = _ENTRY.fullmatch(entry)
    if not matched:
        raise UserError(f"{entry}: needs the form {_FORM}.")
    repository, config, revision, split = matched.groups()
    found = HubData(entry, repository, revision or "main", tuple(endings))
    split, names = found.split(config, split)
    for name in names:
        found.fetch(name)
    for note in found.notes:
        _log.warning("%s", note)
    name = f"{PREFIX}{repository}{f'/{config}' if config else ''}@{found.commit}:{split}"
    return name, [f"{PREFIX}{repository}@{found.commit}/{file}" for file in names]


def local_file(path: str) -> str:
    """The local path of a file from `hub_files`, fetched into the cache if necessary; any other path is unchanged.

    Raises `UserError` if it cannot be fetched.
    """
    matched = _FILE.fullmatch(path) if path.startswith(PREFIX) else None
    if not matched:
        return path
    repository, commit, file = matched.groups()
    return HubData(f"{PREFIX}{repository}@{commit}", repository, commit).fetch(file)


class HubData(HubRepository):
    """A data set at one commit.

    Args:
        asked, repository, revision: as for `HubRepository`.
        endings: the endings of files that can be read; without them, `revision` is a commit and only `fetch` works.
    """

    repository_type, noun = "dataset", "data set"

    def __init__(self, asked: str, repository: str, revision: str, endings: tuple[str, ...] = ()) -> None:
        super().__init__(asked, repository, revision)
        self._endings = endings
        self._names: list[str] = []
        if not endings:  # No look-up: the files of a commit may be cached.
            self.commit = self._commit = revision
            return
        if self._look_up():
            self._names = sorted(self._metadata)
            if first := next((name for name in (_README, *self._names) if name in self._metadata), None):
                self._fetch(first, revision=self._revision)  # So that the cache can resolve the revision offline.
        self.commit = self._commit

    def fetch(self, file: str) -> str:
        """The path of a file in the cache."""
        if self._cached(file, self._commit) is None and not self._metadata:
            self._look_up()
        return self._fetch(file, shown=True)

    def split(self, config: str | None, split: str | None) -> tuple[str, list[str]]:
        """Return (the name of a split, its files). Raises `UserError` if there is no such split."""
        configs = self._configs()
        if config is None and len(configs) > 1:
            config = next((name for name in ("", "default") if name in configs), self._default)
        elif config is None:
            config = next(iter(configs), "")
        if config not in configs:
            known = ", ".join(sorted(filter(None, configs))[:_SHOWN]) or "none"
            raise UserError(
                f"{self._asked}: needs one of its configurations. It has {known}, and holds {self._held()}. Give "
                f"{PREFIX}{self.repository}/CONFIG{self._script_remedy()}."
            )
        splits = configs[config]
        if split is None:
            split = next(iter(splits)) if len(splits) == 1 else _TRAIN
        if not splits.get(split):
            raise UserError(
                f"{self._asked}: needs a split {split!r} of files that are read here. It has "
                f"{', '.join(splits) or 'none'}, and holds {self._held()}. Give {_FORM}{self._script_remedy()}."
            )
        self._require_all_shards(splits[split])
        return split, splits[split]

    def _take_cached(self) -> bool:
        try:
            folder = self._library.snapshot_download(
                self.repository, repo_type=self.repository_type, revision=self._revision, local_files_only=True
            )
        except Exception:  # The type depends on the library's version.
            return False
        self._commit = os.path.basename(folder)
        self._names = [os.path.relpath(path, folder).replace(os.sep, "/") for path in files.files_below(folder)]
        return True

    def _configs(self) -> dict[str, dict[str, list[str]]]:
        """`{configuration: {split: files}}`; the configuration "" has the files that belong to no named one."""
        self._default: str | None = None
        described = list(self._described())
        if not described:
            return self._by_name()
        found = {}
        for values in described:
            name = str(values.get("config_name", "default"))
            self._default = name if values.get("default") else self._default
            found[name] = self._splits(values)
        return found

    def _described(self) -> Iterator[Mapping[str, Any]]:
        """The `configs` of README.md."""
        if _README not in self._names:
            return
        text = files.content(self._fetch(_README)).decode("utf-8", "replace").replace("\r\n", "\n")
        front = _FRONT_MATTER.match(text)
        try:
            values = yaml.safe_load(front[1]) if front else None
        except yaml.YAMLError:
            return
        configs = values.get("configs") if isinstance(values, dict) else None
        for config in configs if isinstance(configs, list) else ():
            if isinstance(config, dict) and ("data_files" in config or "data_dir" in config):
                yield config

    def _splits(self, config: Mapping[str, Any]) -> dict[str, list[str]]:
        """The splits of one of README.md's `configs`."""
        folder = str(config.get("data_dir") or "").strip("./")
        names = [name for name in self._names if not folder or name.startswith(f"{folder}/")]
        listed = config.get("data_files")
        if listed is None:
            return self._named(names)
        listed = listed if isinstance(listed, list) else [listed]
        if not all(isinstance(item, dict) for item in listed):
            listed = [{"split": _TRAIN, "path": listed}]
        splits: dict[str, list[str]] = {}
        for item in listed:
            paths = item.get("path") or []
            for pattern in [paths] if isinstance(paths, str) else paths:
                pattern = f"{folder}/{pattern}" if folder else str(pattern).removeprefix("./")
                parts = pattern.split("/")
                chosen = splits.setdefault(str(item.get("split", _TRAIN)), [])
                chosen += [name for name in names if fits(name.split("/"), parts) and name not in chosen]
        return splits

    def _by_name(self) -> dict[str, dict[str, list[str]]]:
        """`_configs` by top-level folders: each is a configuration, unless it is `data` or named like a split."""
        configs: dict[str, list[str]] = {}
        for name in self._names:
            top = name.partition("/")[0] if "/" in name else ""
            configs.setdefault("" if top == "data" or _split_of(top) else top, []).append(name)
        found = {config: self._named(names) for config, names in configs.items()}
        return {config: splits for config, splits in found.items() if splits}

    def _named(self, names: Iterable[str]) -> dict[str, list[str]]:
        """`{split: files}` by the words in their names; if no name has such a word, all files are for training."""
        names = [
            name
            for name in names
            if plain_ending(name) in self._endings and os.path.basename(name) not in (*DESCRIPTIONS, "state.json")
        ]
        splits: dict[str, list[str]] = {}
        for name in names:
            if split := _split_of(name):
                splits.setdefault(split, []).append(name)
        return splits or ({_TRAIN: names} if names else {})

    def _require_all_shards(self, names: list[str]) -> None:
        """Raises `UserError` if the hub cannot be reached and the cache lacks some of a split's files."""
        shards = [(name, found) for name in names if (found := _SHARD.search(name))]
        needed = sum({_SHARD.sub("", name): int(found[1]) for name, found in shards}.values())
        if self._unreachable and needed != len(shards):
            raise UserError(
                f"{self._asked}: {len(shards)} of its {needed} files are in the cache, and the hub cannot be "
                f"reached ({self._unreachable}). Run this once online, without HF_HUB_OFFLINE."
            )

    def _held(self) -> str:
        more = len(self._names) - _SHOWN
        return (", ".join(self._names[:_SHOWN]) or "nothing") + (f" and {more} more" if more > 0 else "")

    def _script_remedy(self) -> str:
        """The advice for a data set that a script makes; "" for any other."""
        has_script = any(name.endswith(".py") for name in self._names)
        return ", or its copy in Parquet: @refs/convert/parquet" if has_script else ""


def _split_of(name: str) -> str | None:
    """The split that a word in a file's path stands for; None if there is none."""
    words = re.split(r"[^a-z]+", name.lower())
    return next((split for split, known in _SPLIT_WORDS.items() if not set(words).isdisjoint(known)), None)
