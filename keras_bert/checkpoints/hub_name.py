"""How a model of the Hugging Face hub is written where MODEL stands: `hf:NAME[@REVISION]`."""

import os
import re

PREFIX = "hf:"

_NAME = r"[\w.-]+(?:/[\w.-]+)?"
# The model's name and its revision; no revision: what is published now.
HUB_NAME = re.compile(rf"{PREFIX}({_NAME})(?:@([^\s@]+))?", re.ASCII)
_BARE = re.compile(rf"({_NAME})(?:@[^\s@]+)?", re.ASCII)
_WEB = re.compile(rf"(?:https?://huggingface\.co/|hf://)({_NAME})/?", re.ASCII)


def is_hub_name(path):
    return os.fspath(path).startswith(PREFIX)


def is_web_address(path):
    """Whether this is the address of a model's page, which is no folder of any store."""
    return bool(_WEB.fullmatch(os.fspath(path)))


def hub_repository(name):
    """The name on the hub in `hf:NAME[@REVISION]`; None for a folder."""
    return name.removeprefix(PREFIX).partition("@")[0] if name and is_hub_name(name) else None


def shown_name(path):
    """MODEL for a page that others read: of a path its last name alone."""
    return path if is_hub_name(path) else os.path.basename(os.path.abspath(path))


def hub_proposal(path):
    """A sentence that proposes `hf:NAME` for what is no folder and may be the name of a model there; else ""."""
    path = os.fspath(path)
    web = _WEB.fullmatch(path)
    if web:
        return f" A model of the Hugging Face hub is given as {PREFIX}{web.group(1)}."
    name = _BARE.fullmatch(path)
    if not name or set(name.group(1)) <= set("./") or os.path.lexists(path.partition("/")[0]):
        return ""
    return f" If you mean the model of that name on the Hugging Face hub: {PREFIX}{path}."
