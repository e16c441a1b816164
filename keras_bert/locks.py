"""Locks: of several processes that want one folder, one has it and the others are told which.

On a disk the system holds the lock, and lets go of it when the process ends, however that is. Where it has no locks (a
store, Windows, some file systems of networks) the lock is a lease; see `leases`.
"""

import contextlib
import errno
import json
import os
import time
import weakref

from keras_bert import files
from keras_bert.errors import UserError
from keras_bert.leases import Held, Lease, described, this_process

try:
    import fcntl
except ImportError:  # Windows.
    fcntl = None

NAME = ".lock"  # Of a folder's lock that stands in it.
_NO_LOCKS = {errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}
_ASKED_EVERY = 0.5  # Seconds.


def take(path, report=lambda line: None):
    """Takes a lock and returns it: an object whose `release()` gives it back, as do its end and the process's.

    Its `lost_to` says, in words, who took a lease over from a process that had stood still; None as long as the lock is
    held.

    Args:
        path: the lock's file, which is there as long as the lock is held, and after a kill. Its folder is made.
        report: takes a line of text where it takes a while to find out whether the lock is held.

    Raises:
        Held: another process has it, or this one.
    """
    files.make_folder(files.parent(path))
    local = path.removeprefix("file://")
    if fcntl and not files.is_remote(local):
        with contextlib.suppress(_NoLocks):
            return _SystemLock(local)
    return Lease(path, report)


def take_folder(folder, path, report):
    """Takes the lock at `path` for what is to be written into `folder`; see `take`.

    Raises:
        UserError: another process has it; one line that says which.
    """
    try:
        return take(path, report)
    except Held as held:
        raise UserError(
            f"{folder}: in use by {held.holder}. Stop that process or wait for its end, or give another --output."
        ) from None


def require_own(lock, folder):
    """Raises `UserError` where another process has taken over the lock that this one had on `folder`.

    To be asked before anything is written that the other one could be writing too.
    """
    if lock.lost_to is not None:
        raise UserError(
            f"{folder}: taken over by {lock.lost_to}, for this process stood still or could not reach the folder. "
            "That process goes on; this one ends."
        )


@contextlib.contextmanager
def taken(path, report):
    """Has a lock as long as the block lasts; `report` takes a line of text where it must be waited for."""
    lock = None
    while lock is None:
        try:
            lock = take(path)
        except Held as held:
            report(f"{files.parent(path)}: in use by {held.holder}; waiting for it.")
            report = _say_nothing
            time.sleep(_ASKED_EVERY)
    try:
        yield
    finally:
        lock.release()


def _say_nothing(line):
    pass


class _NoLocks(Exception):
    """The file system knows no locks."""


class _SystemLock:
    """A lock that the system holds for this process."""

    lost_to = None

    def __init__(self, path):
        path = os.path.abspath(path)
        descriptor = _locked(path)
        self.release = weakref.finalize(self, _unlock, descriptor, path, os.getpid())
        # A full disk does not keep the lock from being held.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps(this_process()).encode())


def _locked(path):
    """A descriptor of the file, locked. Raises `Held`, `_NoLocks`."""
    while True:
        # Processes that this one starts do not get the descriptor, else they would hold the lock after it.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _lock(descriptor):
                raise Held(_holder(descriptor))
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # Who had the lock has just removed the file: this one has no name any more and keeps nobody out.
        os.close(descriptor)


def _lock(descriptor):
    """Whether the lock was free, and is held now."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # The latter where a network's locks stand in for the disk's.
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise _NoLocks from None
        raise
    return True


def _is_at(descriptor, path):
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _holder(descriptor):
    try:
        return described(json.loads(os.read(descriptor, 4096)))
    except (OSError, ValueError):
        return described(None)


def _unlock(descriptor, path, owner):
    try:
        # Removed while it is locked, so that nobody's lock but this one loses its name.
        with contextlib.suppress(OSError):
            if owner == os.getpid() and _is_at(descriptor, path):
                os.unlink(path)
    finally:
        os.close(descriptor)
