"""Renaming on a disk so that neither a kill nor a power cut loses the old and the new.

A rename alone is safe from a kill. A power cut can bring back a new name without the content behind it, or the old
name; so content is synced before a rename and the folder that holds the names after it.
"""

import contextlib
import errno
import os
import shutil

# What stands under its own name with this behind it was replaced, or was about to be: see `replace_folder`.
_REPLACED = ".replaced"
# Some file systems sync no folders, and some folders may be written in but not opened.
_NO_SYNC = {errno.EACCES, errno.EBADF, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}


def make_folder(path):
    """Makes a folder and those above it; one that is there is no error."""
    path = os.path.abspath(path)
    missing = []
    while not os.path.isdir(path) and path != os.path.dirname(path):
        missing.append(path)
        path = os.path.dirname(path)
    if missing:
        os.makedirs(missing[0], exist_ok=True)
    for made in missing:
        sync_folder(os.path.dirname(made))


def sync_folder(path):
    """Puts the names in a folder on the disk, where the file system knows how to."""
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


def sync_tree(folder):
    """Puts a folder on the disk with all files and folders in it."""
    for where, _, names in os.walk(folder):
        for name in names:
            _sync_file(os.path.join(where, name))
        sync_folder(where)


def _sync_file(path):
    # Windows syncs only what was opened for writing.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename_file(source, target):
    """Gives a synced file its name, in place of what has it."""
    os.replace(source, target)
    sync_folder(os.path.dirname(os.path.abspath(target)))


def replace_folder(source, target):
    """Gives a folder another name, in place of what has it.

    No system call that Python knows exchanges two folders, so the old one steps aside first. Ended at any instant, the
    old one or the new one is whole where `standing` finds it.
    """
    source, target = (os.path.abspath(path) for path in (source, target))
    sync_tree(source)
    old = target + _REPLACED
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


def standing(path):
    """Where the folder `path` stands now: there, or where a kill left the old one while it was replaced."""
    path = os.fspath(path)
    old = path.rstrip("/") + _REPLACED
    return old if not os.path.lexists(path) and os.path.isdir(old) else path


def remove_whole(path):
    """Removes a folder so that never a part of it stands under its name."""
    path = os.path.abspath(path)
    if os.path.lexists(path):
        aside = f"{path}.partial"
        remove_tree(aside)
        os.rename(path, aside)
        remove_tree(aside)


def remove_tree(path):
    """Removes a folder with all in it, as far as that can be done; of a link to one, the link."""
    if os.path.islink(path):
        os.unlink(path)
    else:
        shutil.rmtree(path, ignore_errors=True)
