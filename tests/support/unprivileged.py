"""A user whom the permissions of files bind, unlike the superuser who may run the tests."""

import contextlib
import os

_NOBODY = 65534


@contextlib.contextmanager
def unprivileged(folder, monkeypatch):
    """Works in a folder as such a user during the block."""
    monkeypatch.chdir(folder)  # Not even the folders above may be read by others.
    folder.chmod(0o755)
    user = os.geteuid()
    with contextlib.suppress(PermissionError):  # The tests' own user is one.
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
