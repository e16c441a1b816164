"""Locks: one of several processes gets a folder, and the others are told which process has it.

On a disk the system holds the lock, and releases it when the process ends in any way. Where it has no locks (a store,
Windows, some network file systems) the lock is a lease; see `leases`.
"""

import contextlib
import errno
import json
import os
import time
import weakref
from collections.abc import Callable, Iterator

from keras_bert import files
from keras_bert.errors import UserError
from keras_bert.leases import Held, Lease, described, this_process

try:
    import fcntl
except ImportError:  # Windows.
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"  # The file of a folder's lock, inside the folder.
_NO_LOCKS = {errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}
_ASKED_EVERY = 0.5  # Seconds.


def _say_nothing(line: str) -> None:
    pass


def take(path: str, report: Callable[[str], object] = _say_nothing) -> "Lock":
    """Takes a lock. `release()` gives it back, as do its garbage collection and the end of the process.

    Its `lost_to` is the process, in words, that took a lease over while this one was suspended; None while it is held.

    Args:
        path: the lock's file, which exists while the lock is held, and after a kill. Its folder is made.
        report: takes a line of text if it takes a while to find out whether the lock is held.

    Raises:
        Held: another process has the lock, or this one has it already.
    """
    files.make_folder(files.parent(path))
    local = path.removeprefix("file://")
    if fcntl and not files.is_remote(local):
        with contextlib.suppress(_NoLocks):
            return _SystemLock(local)
    return Lease(path, report)


def take_folder(folder: files.StrPath, path: str, report: Callable[[str], object]) -> "Lock":
    """Takes the lock at `path` before writing into `folder`; see `take`.

    Raises:
        UserError: another process has it, which the message names.
    """
    try:
        return take(path, report)
    except Held as held:
        raise UserError(
            f"{folder}: in use by {held.holder}. Stop that process, wait for it to end, or give another --output."
        ) from None


def require_own(lock: "Lock", folder: files.StrPath) -> None:
    """Raises `UserError` if another process has taken over this one's lock on `folder`.

    To be called before writing anything that the other process could be writing too.
    """
    if lock.lost_to is not None:
        raise UserError(
            f"{folder}: taken over by {lock.lost_to}, because this process was suspended or could not reach the "
            "folder. That process continues; this one ends."
        )


@contextlib.contextmanager
def taken(path: str, report: Callable[[str], object]) -> Iterator[None]:
    """Holds a lock during the block; `report` takes a line of text if it has to wait for it."""
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


class _NoLocks(Exception):
    """The file system does not support locks."""


class _SystemLock:
    """A lock that the system holds for this process."""

    lost_to: str | None = None

    def __init__(self, path: str) -> None:
        path = os.path.abspath(path)
        descriptor = _locked(path)
        self.release = weakref.finalize(self, _unlock, descriptor, path, os.getpid())
        # The lock holds even if the disk is too full to write this.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps(this_process()).encode())


Lock = _SystemLock | Lease


def _locked(path: str) -> int:
    """A descriptor of the file, locked. Raises `Held`, `_NoLocks`."""
    while True:
        # Child processes do not inherit the descriptor; otherwise they would keep the lock after this one ends.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _lock(descriptor):
                raise Held(_holder(descriptor))
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # The last holder has just removed the file: this descriptor has no name and would lock nobody out.
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Tries to take the lock, and returns whether it was free."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # The latter on network file systems that emulate flock.
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise _NoLocks from None
        raise
    return True


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> str:
    try:
        return described(json.loads(os.read(descriptor, 4096)))
    except (OSError, ValueError):
        return described(None)


def _unlock(descriptor: int, path: str, owner: int) -> None:
    try:
        # Removed while it is locked, so that only this lock loses its name.
        with contextlib.suppress(OSError):
            if owner == os.getpid() and _is_at(descriptor, path):
                os.unlink(path)
    finally:
        os.close(descriptor)
