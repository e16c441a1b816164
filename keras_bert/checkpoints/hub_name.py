"""How a MODEL argument names a model of the Hugging Face hub: `hf:NAME[@REVISION]`."""

import os
import re

from keras_bert.files import StrPath

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
    """Whether this is a hub name with a commit, which names the same model at any time."""
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
    """A sentence, with a leading space, that suggests `hf:NAME` if `path` may be a model of the hub; else ""."""
    path = os.fspath(path)
    web = _WEB.fullmatch(path)
    if web:
        return f" Give a model of the Hugging Face hub as {PREFIX}{web.group(1)}."
    name = _BARE.fullmatch(path)
    if not name or set(name.group(1)) <= set("./") or os.path.lexists(path.partition("/")[0]):
        return ""
    return f" If you mean the model of that name on the Hugging Face hub: {PREFIX}{path}."
