"""What a setting must be."""


def require(condition, key, needed, received):
    """Raises the `ValueError` that `settings.from_mapping` turns into a line with the section's name."""
    if not condition:
        raise ValueError(f"{key}: needs {needed}. Received: {received!r}.")


def require_share(key, value):
    require(0.0 <= value <= 1.0, key, "a share from 0 to 1", value)


def require_positive(settings_object, *keys):
    for key in keys:
        value = getattr(settings_object, key)
        require(value > 0, key, "a value above 0", value)
