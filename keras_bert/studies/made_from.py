"""What a part of a study was made from, beside it, so that it is not taken for another part."""

from collections.abc import Mapping
from typing import Any

from keras_bert import settings
from keras_bert.errors import UserError


def require_same(path: str, before: Mapping[str, Any], now: Mapping[str, Any], remedy: str) -> None:
    """Raises `UserError` if the part `path` was made from something other than what is given now."""
    if changes := settings.differences(before, now):
        shown = "; ".join(f"{key}: {there!r} there, {here!r} now" for key, there, here in changes)
        raise UserError(f"{path}: was made otherwise ({shown}). {remedy}")
