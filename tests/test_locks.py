"""Locks: one process has it, another is told which, and no kill leaves it behind."""

import errno
import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest
from said import listen

from keras_bert.core import locks
from keras_bert.core import locks as leases
from keras_bert.core.errors import UserError
from keras_bert.core.locks import Held, Lease

HOLDER = """
import sys
from keras_bert.core import locks
held = locks.take(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
held.release()
"""
LEASE_EXPIRES_AFTER = 1.5  # Seconds; a busy machine may keep the thread that renews a lease waiting for half of one.
ME = f"process {os.getpid()} on {socket.gethostname()}, since 20"


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock `run/.lock` until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "run" / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_the_second_process_is_told_which_has_it(tmp_path, holder):
    path = str(tmp_path / "run" / ".lock")
    with pytest.raises(Held, match=f"process {holder.pid} on {socket.gethostname()}, since 20"):
        locks.take(path)
    holder.communicate()
    assert not os.path.exists(path)
    locks.take(path).release()
    assert os.listdir(tmp_path / "run") == []


def test_a_lock_s_file_nested_too_deep_is_of_another_process(tmp_path, holder):
    (tmp_path / "run" / ".lock").write_text("[" * 100_000)
    with pytest.raises(Held, match="another process"):
        locks.take(str(tmp_path / "run" / ".lock"))


def test_a_killed_holder_lets_go_at_once(tmp_path, holder):
    path = str(tmp_path / "run" / ".lock")
    holder.kill()
    holder.wait()
    assert os.path.exists(path)  # A killed process cannot remove it, but it is in nobody's way.
    with pytest.raises(Held, match=ME):
        kept = locks.take(path)
        locks.take(path)
    kept.release()


def test_a_lock_that_nobody_keeps_is_let_go(tmp_path):
    path = str(tmp_path / ".lock")
    lock = locks.take(path)
    del lock
    locks.take(path).release()


def test_it_holds_after_a_change_of_folder(tmp_path, monkeypatch):
    """A relative path then means another file: that one must stay, and the lock's own must go."""
    monkeypatch.chdir(tmp_path)
    lock = locks.take("run/.lock")
    (tmp_path / "other" / "run").mkdir(parents=True)
    (tmp_path / "other" / "run" / ".lock").write_text("another's")
    monkeypatch.chdir(tmp_path / "other")
    lock.release()
    assert (tmp_path / "other" / "run" / ".lock").exists() and not (tmp_path / "run" / ".lock").exists()


def test_a_fork_that_ends_does_not_let_go(tmp_path):
    path = str(tmp_path / ".lock")
    lock = locks.take(path)
    child = os.fork()
    if child == 0:
        lock.release()
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(Held):
        locks.take(path)
    lock.release()


def test_of_many_at_the_same_time_one_gets_it(tmp_path):
    """The file is removed while others have it open: a lock on a file without a name must not count."""
    path, inside, overlaps = str(tmp_path / ".lock"), [], []

    def work():
        for _ in range(200):
            try:
                lock = locks.take(path)
            except Held:
                continue
            inside.append(1)
            overlaps.append(len(inside))
            inside.pop()
            lock.release()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(overlaps) > 8 and set(overlaps) == {1}


def test_one_line_names_folder_holder_and_remedy(tmp_path):
    path = str(tmp_path / ".lock")
    lock = locks.take(path)
    with pytest.raises(UserError, match=f"^runs/x: in use by {ME}.*Stop that process.*--output.$"):
        locks.take_folder("runs/x", path)
    lock.release()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, None])
def test_where_the_system_knows_no_locks_it_is_a_lease(tmp_path, monkeypatch, number):
    """Some network file systems have none, and Windows lacks this kind."""
    path = str(tmp_path / ".lock")
    if number is None:
        monkeypatch.setattr(locks, "fcntl", None)
    else:

        def refuse(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(locks.fcntl, "flock", refuse)
    lock = locks.take(path)
    assert isinstance(lock, Lease) and json.load(open(path, encoding="utf-8"))["pid"] == os.getpid()
    lock.release()
    assert os.listdir(tmp_path) == []


@pytest.fixture
def quick(monkeypatch):
    """Leases that count in tenths of a second."""
    monkeypatch.setattr(leases, "RENEWED_EVERY", 0.1)
    monkeypatch.setattr(leases, "LEASE_EXPIRES_AFTER", LEASE_EXPIRES_AFTER)
    monkeypatch.setattr(leases, "_LOOKS_EVERY", 0.05)


@pytest.fixture(params=["", "ram://"])
def path(request, tmp_path):
    return f"{request.param or tmp_path}{'locks-' if request.param else '/'}{time.monotonic_ns()}.lock"


def told(path, **values):
    """Writes the lease of another process, with these values."""
    lease = {
        "id": "other",
        "pid": 7,
        "host": "elsewhere",
        "system": "another",
        "since": "today",
        "renewals": 0,
        **values,
    }
    leases.files.make_folder(leases.files.parent(path))
    with leases.files.open_file(path, "w") as stream:
        stream.write(json.dumps(lease))


def test_a_lease_that_is_renewed_is_not_taken_over(quick, path):
    lease, said = Lease(path), listen()
    with pytest.raises(Held, match=ME):
        Lease(path)
    assert "Watching" in said[0] and lease.lost_to is None
    lease.release()
    assert not leases.files.exists(path)
    said = listen()
    Lease(path).release()
    assert not said


def test_a_lease_left_alone_is_taken_over_whatever_the_clocks_say(quick, path):
    """Its process may have run on another machine, whose clock is ahead by hours."""
    told(path, since="2999-01-01 00:00:00")
    started_at = time.monotonic()
    lease = Lease(path)
    assert time.monotonic() - started_at >= LEASE_EXPIRES_AFTER
    lease.release()


def test_a_lease_that_is_given_back_is_not_waited_for(quick, monkeypatch, path):
    monkeypatch.setattr(leases, "LEASE_EXPIRES_AFTER", 60)
    told(path)
    threading.Timer(0.2, lambda: leases.files.remove_file(path)).start()
    Lease(path).release()


@pytest.mark.parametrize("content", ["{", "[]", "[" * 100_000, '{"id": "x"}'])
def test_a_lease_half_written_is_left_alone_too(quick, tmp_path, content):
    (tmp_path / "lock").write_text(content)
    Lease(str(tmp_path / "lock")).release()


def test_a_lease_of_a_process_that_cannot_be_is_left_alone_too(quick, path):
    told(path, pid=2**70, system=leases._system())
    Lease(path).release()


def test_a_lease_of_a_killed_process_of_this_system_is_taken_at_once(tmp_path):
    """A run that is killed and started again on the same machine need not wait."""
    path = str(tmp_path / "lock")
    code = "import os, sys; from keras_bert.core.locks import Lease; lease = Lease(sys.argv[1]); os._exit(1)"
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == 1
    assert os.path.exists(path)
    said = listen()
    Lease(path).release()
    assert not said
    told(path, pid=os.getpid(), system=leases._system())  # An earlier process had this one's number.
    said = listen()
    Lease(path).release()
    assert not said


def test_who_stood_still_finds_that_the_lease_is_another_s(quick, path):
    """A machine that slept must not go on writing where another one has taken over."""
    lease = Lease(path)
    locks.require_own(lease, "runs/x")
    told(path)
    for _ in range(100):
        if lease.lost_to:
            break
        time.sleep(0.05)
    with pytest.raises(UserError, match="runs/x: taken over by process 7 on elsewhere, since today"):
        locks.require_own(lease, "runs/x")
    lease.release()
    assert leases.files.exists(path)


def test_of_several_leases_at_the_same_time_the_last_one_stays(monkeypatch, tmp_path):
    monkeypatch.setattr(leases, "SETTLED_AFTER", 0.5)
    monkeypatch.setattr(leases, "RENEWED_EVERY", 0.1)
    path, outcomes = str(tmp_path / "lock"), []

    def work():
        try:
            outcomes.append(Lease(path))
        except Held:
            outcomes.append(None)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 4 and sum(lease is not None for lease in outcomes) == 1
    next(filter(None, outcomes)).release()


def test_a_store_that_does_not_answer_for_a_while_is_asked_again(quick, path, monkeypatch):
    lease, read = Lease(path), leases._read
    monkeypatch.setattr(leases, "_read", lambda path: (_ for _ in ()).throw(OSError(errno.EAGAIN, "Unavailable")))
    time.sleep(0.3)
    monkeypatch.setattr(leases, "_read", read)

    def renewals():
        while "renewals" not in (found := read(path)):  # Unlike a store, a disk shows files that are half written.
            time.sleep(0.01)
        return found["renewals"]

    before = renewals()
    time.sleep(0.5)
    assert renewals() > before and lease.lost_to is None
    lease.release()
