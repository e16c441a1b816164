"""Renames on a disk that leave the old or the new version intact after a kill or a power cut.

A rename alone survives a kill. After a power cut the new name may have lost its content, or the old name may be back.
So content is synced before the rename, and the folder that holds the names after it.
"""

import contextlib
import errno
import os
import shutil

# The suffix of a folder that was being replaced: see `replace_folder`.
REPLACED = ".replaced"
# Some file systems cannot sync folders, and some folders can be written to but not opened.
_NO_SYNC = {errno.EACCES, errno.EBADF, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}


def make_folder(path: str | os.PathLike[str]) -> None:
    """Makes a folder and its parents unless they exist."""
    path = os.path.abspath(path)
    missing = []
    while not os.path.isdir(path) and path != os.path.dirname(path):
        missing.append(path)
        path = os.path.dirname(path)
    if missing:
        os.makedirs(missing[0], exist_ok=True)
    for made in missing:
        sync_folder(os.path.dirname(made))


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Flushes the names in a folder to the disk, if the file system supports that."""
    if os.name == "nt":
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def sync_tree(folder: str | os.PathLike[str]) -> None:
    """Flushes a folder and everything below it to the disk."""
    for where, _, names in os.walk(folder):
        for name in names:
            _sync_file(os.path.join(where, name))
        sync_folder(where)


def _sync_file(path: str) -> None:
    # Windows syncs only files that are open for writing.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename_file(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Renames a synced file, replacing `target` if it exists."""
    os.replace(source, target)
    sync_folder(os.path.dirname(os.path.abspath(target)))


def replace_folder(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Renames a folder, replacing `target` if it exists.

    Python has no system call that exchanges two folders, so the old one is renamed first. If the process is killed at
    any instant, `surviving_folder` finds the old or the new folder complete.
    """
    source, target = (os.path.abspath(path) for path in (source, target))
    sync_tree(source)
    old = target + REPLACED
    if os.path.lexists(target):
        remove_whole(old)
        os.rename(target, old)
    try:
        os.rename(source, target)
    except OSError:
        with contextlib.suppress(OSError):
            os.rename(old, target)
        raise
    sync_folder(os.path.dirname(target))
    remove_whole(old)


def surviving_folder(path: str | os.PathLike[str]) -> str:
    """The current place of the folder `path`: itself, or where a kill during its replacement left the old one."""
    path = os.fspath(path)
    old = path.rstrip("/") + REPLACED
    return old if not os.path.lexists(path) and os.path.isdir(old) else path


def remove_whole(path: str | os.PathLike[str]) -> None:
    """Removes a folder so that its name never refers to a part of it."""
    path = os.path.abspath(path)
    if os.path.lexists(path):
        aside = f"{path}.partial"
        remove_tree(aside)
        os.rename(path, aside)
        remove_tree(aside)


def remove_tree(path: str | os.PathLike[str]) -> None:
    """Removes a folder and its contents as far as possible; for a symbolic link, only the link."""
    if os.path.islink(path):
        os.unlink(path)
    else:
        shutil.rmtree(path, ignore_errors=True)
