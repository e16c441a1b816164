"""What a setting must be."""

from typing import Any


def require(condition, key, needed, received):
    """Raises the `ValueError` that `settings.from_mapping` turns into a line with the section's name."""
    if not condition:
        raise ValueError(f"{key}: needs {needed}. Received: {received!r}.")


def require_share(key, value):
    require(0.0 <= value <= 1.0, key, "a share from 0 to 1", value)


def require_multiple(settings_object: Any, divisor: str, *keys: str) -> None:
    """Each of the settings named is a multiple of that named `divisor`."""
    step = getattr(settings_object, divisor)
    for key in keys:
        value = getattr(settings_object, key)
        below = value // step * step
        nearest = f"{below} or {below + step}" if below else f"{step}"
        require(value % step == 0, key, f"a multiple of {divisor} ({step}), the nearest being {nearest}", value)


def require_positive(settings_object, *keys):
    for key in keys:
        value = getattr(settings_object, key)
        require(value > 0, key, "a value above 0", value)
