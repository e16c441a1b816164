"""Locks where the system has none: a file that its holder writes anew again and again.

A store cannot tell whether the process that wrote a file still runs, and its clock is not ours. So whoever finds a
lease watches it for a while by their own clock: one that is renewed is held, one that is left alone is taken over. The
lease of a process that ran on this very system and is gone is taken over at once.
"""

import contextlib
import datetime
import json
import os
import socket
import threading
import time
import uuid
import weakref

from keras_bert import files

RENEWED_EVERY = 20.0  # Seconds.
LEFT_ALONE_AFTER = 100.0
SETTLED_AFTER = 1.0  # Longer than a small file takes to be written.
_LOOKS_EVERY = 2.0
_LOOKS_AT_EMPTY = 3


class Held(Exception):
    """Another process has the lock: `holder` says which."""

    def __init__(self, holder):
        super().__init__(holder)
        self.holder = holder


def this_process():
    """What a lock says of who has it, as a plain mapping."""
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "system": _system(),
        "since": datetime.datetime.now().isoformat(" ", "seconds"),
    }


def described(holder):
    """What a lock says, in words; `holder` may be anything."""
    try:
        return f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
    except (KeyError, TypeError):
        return "another process"


class Lease:
    """A lease that this process has, from now until `release` or until it is gone.

    Args:
        path: the lease's file, in a folder that is there.
        report: takes a line of text where another's lease must be watched.

    Attributes:
        lost_to: who took the lease over while this process could not renew it, in words; None while it is held. The
            store is asked, for a process that stood still does not know it yet.

    Raises:
        Held: another process renews the lease.
    """

    def __init__(self, path, report):
        self._state = state = _State(path)
        found = _found(path)
        if found is not None and not _is_of_a_process_gone(found):
            report(
                f"{files.parent(path)}: {described(found)}, has a lease here. Watching whether it is renewed, for "
                f"{LEFT_ALONE_AFTER:.0f} seconds at the most."
            )
            _watch(path, found)
        self.release = weakref.finalize(self, state.release)
        _held_here.add(state.lease["id"])
        state.write()
        # Of several that come at the same time the last one stays.
        time.sleep(SETTLED_AFTER)
        found = _read(path)
        if found is not None and found.get("id") != state.lease["id"]:
            self.release()
            raise Held(described(found))
        threading.Thread(target=state.renew, daemon=True).start()

    @property
    def lost_to(self):
        with contextlib.suppress(OSError):  # What is written next will say so.
            self._state.look()
        return self._state.lost_to


_held_here = set()  # The ids of this process's leases.


class _State:
    """What the renewing thread knows; it does not keep the `Lease` from being let go."""

    def __init__(self, path):
        self.path = path if files.is_remote(path) else os.path.abspath(path)
        self.lease = {"id": uuid.uuid4().hex, "renewals": 0, **this_process()}
        self.lost_to = None
        self._is_over = threading.Event()
        self._writes = threading.Lock()

    def write(self):
        with files.open_file(self.path, "w") as stream:
            stream.write(json.dumps(self.lease))

    def renew(self):
        while not self._is_over.wait(RENEWED_EVERY):
            # A store that does not answer now is asked again. Nothing may end this thread but the end of the lease.
            with contextlib.suppress(Exception), self._writes:
                self.look()
                if self.lost_to is None and not self._is_over.is_set():
                    self.lease["renewals"] += 1
                    self.write()

    def look(self):
        found = _read(self.path)
        if found and found.get("id") != self.lease["id"]:
            self.lost_to = described(found)

    def release(self):
        self._is_over.set()
        _held_here.discard(self.lease["id"])
        with contextlib.suppress(OSError), self._writes:
            found = _read(self.path)
            if found is not None and found.get("id") == self.lease["id"]:
                files.remove_file(self.path)


def _found(path):
    """What the lease at `path` says, None where there is none.

    A file that stays empty is what `locks` leaves where the system knows no locks.
    """
    for _ in range(_LOOKS_AT_EMPTY):
        if files.size(path) != 0:
            break
        time.sleep(_LOOKS_EVERY / 10)
    else:
        return None
    return _read(path)


def _read(path):
    """What a lease says: a mapping, empty for one that is not readable; None where there is none."""
    try:
        with files.open_file(path) as stream:
            found = json.loads(stream.read())
    except FileNotFoundError:
        return None
    except ValueError:  # Half written, or nobody's.
        return {}
    return found if isinstance(found, dict) else {}


def _watch(path, found):
    """Returns when a lease is left alone or gone. Raises `Held` when it is renewed."""
    end = time.monotonic() + LEFT_ALONE_AFTER
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(_LOOKS_EVERY, left))
        now = _read(path)
        if now is None:
            return
        if now != found:
            raise Held(described(now))


def _is_of_a_process_gone(found):
    """Whether a lease is surely nobody's any more: its process ran on this system, and does not."""
    system, pid = found.get("system"), found.get("pid")
    if system is None or system != _system() or not isinstance(pid, int) or pid < 1:
        return False
    if pid == os.getpid():
        return found.get("id") not in _held_here
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _system():
    """What tells one running system, or container in it, from all others; None where nothing does.

    Two containers may have one host name, and each a process of the same number.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return f"{stream.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None
