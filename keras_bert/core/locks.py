"""Locks: one of several processes gets a folder, and the others learn which process has it.

On a disk the system holds the lock, and releases it when the process ends in any way. Where it has no locks (a store,
Windows, some network file systems) the lock is a lease, a file that its holder keeps rewriting.

A store cannot tell whether the process that wrote a file still runs, and its clock is not ours. So a process that finds
a lease watches it for a while by its own clock: a lease that is renewed is held, one that is not is taken over. The
lease of a process that ran on this system and has ended is taken over at once.
"""

import contextlib
import datetime
import errno
import json
import logging
import os
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import parse_json

_log = logging.getLogger(__name__)

RENEWED_EVERY = 20.0  # Seconds.
LEASE_EXPIRES_AFTER = 100.0
SETTLED_AFTER = 1.0  # Longer than writing a small file takes.
_LOOKS_EVERY = 2.0
_EMPTY_FILE_CHECKS = 3


class Held(Exception):
    """Another process, `holder` in words, has the lock."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


def this_process() -> dict[str, Any]:
    """The description of this process for a lock's file."""
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "system": _system(),
        "since": datetime.datetime.now().isoformat(" ", "seconds"),
    }


def described(holder: Any) -> str:
    """The holder in a lock's file, in words; `holder` may be any JSON value."""
    try:
        return f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
    except (KeyError, TypeError):
        return "another process"


class Lease:
    """A lease that this process holds from now until `release()` or its end.

    Args:
        path: the file of the lease, in an existing folder.

    Attributes:
        release: gives the lease back.
        lost_to: the process, in words, that took the lease over while this one could not renew it; None while it is
            held. Each access asks the store, because a process that was suspended does not know yet.

    Raises:
        Held: another process renews the lease.
    """

    def __init__(self, path: files.StrPath) -> None:
        self._state = state = _State(path)
        found = _found(path)
        if found is not None and not _is_of_ended_process(found):
            _log.info(
                f"{files.parent(path)}: {described(found)}, has a lease here. Watching for up to "
                f"{LEASE_EXPIRES_AFTER:.0f} seconds whether it is renewed."
            )
            _watch(path, found)
        self.release = weakref.finalize(self, state.release)
        _held_here.add(state.lease["id"])
        state.write()
        # If several processes write at the same time, the last one wins.
        time.sleep(SETTLED_AFTER)
        found = _read(path)
        if found is not None and found.get("id") != state.lease["id"]:
            self.release()
            raise Held(described(found))
        threading.Thread(target=state.renew, daemon=True).start()

    @property
    def lost_to(self) -> str | None:
        with contextlib.suppress(OSError):  # The next write will report it.
            self._state.look()
        return self._state.lost_to


_held_here: set[str] = set()  # The ids of this process's leases.


class _State:
    """The state of the renewing thread, outside the `Lease` so that the thread does not keep the `Lease` alive."""

    def __init__(self, path: files.StrPath) -> None:
        self.path = path if files.is_remote(path) else os.path.abspath(path)
        self.lease = {"id": uuid.uuid4().hex, "renewals": 0, **this_process()}
        self.lost_to: str | None = None
        self._is_over = threading.Event()
        self._writes = threading.Lock()

    def write(self) -> None:
        with files.open_file(self.path, "w") as stream:
            stream.write(json.dumps(self.lease))

    def renew(self) -> None:
        while not self._is_over.wait(RENEWED_EVERY):
            # A store that does not answer is asked again next time. Only the end of the lease may end this thread.
            with contextlib.suppress(Exception), self._writes:
                self.look()
                if self.lost_to is None and not self._is_over.is_set():
                    self.lease["renewals"] += 1
                    self.write()

    def look(self) -> None:
        found = _read(self.path)
        if found and found.get("id") != self.lease["id"]:
            self.lost_to = described(found)

    def release(self) -> None:
        self._is_over.set()
        _held_here.discard(self.lease["id"])
        with contextlib.suppress(OSError), self._writes:
            found = _read(self.path)
            if found is not None and found.get("id") == self.lease["id"]:
                files.remove_file(self.path)


def _found(path: files.StrPath) -> dict[str, Any] | None:
    """The content of the lease at `path`, None if there is none.

    A `_SystemLock` leaves an empty file behind if the file system has no locks; a file that stays empty is no lease.
    """
    for _ in range(_EMPTY_FILE_CHECKS):
        if files.size(path) != 0:
            break
        time.sleep(_LOOKS_EVERY / 10)
    else:
        return None
    return _read(path)


def _read(path: files.StrPath) -> dict[str, Any] | None:
    """The content of a lease, empty if it is not readable; None if there is none."""
    try:
        found = parse_json(files.content(path))
    except FileNotFoundError:
        return None
    except ValueError:  # Half written, or not a lease.
        return {}
    return found if isinstance(found, dict) else {}


def _watch(path: files.StrPath, found: Mapping[str, Any]) -> None:
    """Returns once a lease has expired or is gone. Raises `Held` if it is renewed."""
    end = time.monotonic() + LEASE_EXPIRES_AFTER
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(_LOOKS_EVERY, left))
        now = _read(path)
        if now is None:
            return
        if now != found:
            raise Held(described(now))


def _is_of_ended_process(found: Mapping[str, Any]) -> bool:
    """Whether the holder of a lease ran on this system and has certainly ended."""
    system, pid = found.get("system"), found.get("pid")
    if system is None or system != _system() or not isinstance(pid, int) or pid < 1:
        return False
    if pid == os.getpid():
        return found.get("id") not in _held_here
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # An id that no process here can have.
        return False
    return False


def _system() -> str | None:
    """An identifier of the running system or container; None if there is none.

    Two containers may share a host name, and each may have a process with the same id.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return f"{stream.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


try:
    import fcntl
except ImportError:  # Windows.
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"  # The file of a folder's lock, inside the folder.
_NO_LOCKS = {errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}
_ASKED_EVERY = 0.5  # Seconds.


def take(path: str) -> "Lock":
    """Takes a lock. `release()` gives it back, as do its garbage collection and the end of the process.

    Its `lost_to` is the process, in words, that took a lease over while this one was suspended; None while it is held.

    Args:
        path: the lock's file, which exists while the lock is held, and after a kill. Its folder is made.

    Raises:
        Held: another process has the lock, or this one has it already.
    """
    files.make_folder(files.parent(path))
    local = path.removeprefix("file://")
    if fcntl and not files.is_remote(local):
        with contextlib.suppress(_NoLocks):
            return _SystemLock(local)
    return Lease(path)


def take_folder(folder: files.StrPath, path: str) -> "Lock":
    """Takes the lock at `path` before writing into `folder`; see `take`.

    Raises:
        UserError: another process has it, which the message names.
    """
    try:
        return take(path)
    except Held as held:
        raise UserError(
            f"{folder}: in use by {held.holder}. Stop that process, wait for it to end, or give another --output."
        ) from None


@contextlib.contextmanager
def folder_taken(folder: files.StrPath) -> Iterator[None]:
    """Holds the lock beside a folder or a file during the block, in which it gets its name; see `take_folder`."""
    lock = take_folder(folder, f"{os.fspath(folder).rstrip('/')}{NAME}")
    try:
        yield
    finally:
        lock.release()


def require_own(lock: "Lock", folder: files.StrPath) -> None:
    """Raises `UserError` if another process has taken over this one's lock on `folder`.

    Call it before writing anything that the other process could be writing too.
    """
    if lock.lost_to is not None:
        raise UserError(
            f"{folder}: taken over by {lock.lost_to}, because this process was suspended or could not reach the "
            "folder. That process continues; this one ends."
        )


@contextlib.contextmanager
def taken(path: str) -> Iterator[None]:
    """Holds a lock during the block, after waiting for it if need be."""
    lock, is_waiting = None, False
    while lock is None:
        try:
            lock = take(path)
        except Held as held:
            if not is_waiting:
                _log.info(f"{files.parent(path)}: in use by {held.holder}; waiting for it.")
            is_waiting = True
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
        return described(parse_json(os.read(descriptor, 4096)))
    except (OSError, ValueError):
        return described(None)


def _unlock(descriptor: int, path: str, owner: int) -> None:
    try:
        # Removed while it is locked, so that no other process's lock loses its file.
        with contextlib.suppress(OSError):
            if owner == os.getpid() and _is_at(descriptor, path):
                os.unlink(path)
    finally:
        os.close(descriptor)
