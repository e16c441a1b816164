"""Checks of the values of settings."""

import math

MAX_SEED = 2**32 - 1


def require(condition: object, key: str, needed: str, received: object) -> None:
    """Raises `ValueError` unless the condition holds; `settings.from_mapping` adds the section to the message."""
    if not condition:
        raise ValueError(f"{key}: needs {needed}. Received: {received!r}.")


def require_share(key: str, value: float) -> None:
    """Raises `ValueError` unless the value is from 0 to 1."""
    require(0.0 <= value <= 1.0, key, "a share from 0 to 1", value)


def require_seed(seed: int) -> None:
    """Raises `ValueError` unless all generators of random numbers take the seed: NumPy's takes 32 bits."""
    require(0 <= seed <= MAX_SEED, "seed", f"a whole number from 0 to {MAX_SEED}", seed)


def require_multiple(settings_object: object, divisor: str, *keys: str) -> None:
    """Raises `ValueError` unless each of the named settings is a multiple of the setting named `divisor`."""
    step = getattr(settings_object, divisor)
    for key in keys:
        value = getattr(settings_object, key)
        below = value // step * step
        nearest = f"{below} or {below + step}" if below else f"{step}"
        require(value % step == 0, key, f"a multiple of {divisor} ({step}), the nearest being {nearest}", value)


def require_positive(settings_object: object, *keys: str) -> None:
    """Raises `ValueError` unless each of the named settings is larger than 0, and finite."""
    for key in keys:
        value = getattr(settings_object, key)
        require(0 < value < math.inf, key, "a value above 0", value)
