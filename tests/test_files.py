"""Every function of `core/files.py` and `core/patterns.py`: on a disk, on a disk as a store, in TensorFlow's memory."""

import errno
import gzip
import io
import itertools
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import tensorflow as tf
from full_disk import no_file_above
from unprivileged import unprivileged

from keras_bert.core import files, stores, whole_files
from keras_bert.core.array_files import read_array, write_array
from keras_bert.core.errors import UserError
from keras_bert.core.patterns import expand

_numbers = itertools.count()
every_place = pytest.mark.parametrize("root", ["plain", "file://", "ram://"], indirect=True)
every_store = pytest.mark.parametrize("root", ["file://", "ram://"], indirect=True)


@pytest.fixture
def root(request, tmp_path):
    """A folder of one's own: plain, at `file://`, or in TensorFlow's memory."""
    if request.param == "ram://":
        path = f"ram://test-files-{next(_numbers)}"
    else:
        path = f"{request.param.removeprefix('plain')}{tmp_path}/folder"
    files.make_folder(path)
    return path


def write(path, content=b"content"):
    files.make_folder(files.parent(path))
    with files.open_file(path, "wb") as stream:
        stream.write(content)
    return path


def read(path):
    with files.open_file(path) as stream:
        return stream.read()


@every_place
def test_streams_have_pythons_methods(root):
    """GFile has no writelines, encodings or line ends, and its `seek` means something else when it writes."""
    path = files.join(root, "text")
    with files.open_file(path, "w", newline="\r\n") as stream:
        stream.writelines(["é\n", "ü\n"])
    with files.open_file(path, "a") as stream:
        stream.write("x")
    assert read(path) == "é\r\nü\r\nx".encode()
    with files.open_file(path, "r") as stream:
        assert [*stream] == ["é\n", "ü\n", "x"]
    write(path, b"a\xffb\n")
    with files.open_file(path, "r", errors="replace") as stream:
        assert stream.read() == "a\ufffdb\n"
    with files.open_file(path) as stream:
        assert stream.seek(-2, io.SEEK_END) == 2 and stream.read() == b"b\n"
        assert stream.seek(0) == 0 and stream.read(1) == b"a" and stream.readline() == b"\xffb\n"


@every_place
def test_libraries_take_the_streams(root):
    """zipfile and NumPy must find out that they cannot go back in a stream that writes."""
    path = files.join(root, "archive")
    with files.open_file(path, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a", b"a" * 9)
    with files.open_file(path) as stream, zipfile.ZipFile(stream) as archive:
        assert archive.read("a") == b"a" * 9
    array = np.arange(1 << 19, dtype="int64").reshape(2, -1)
    with files.open_file(path, "wb") as stream:
        np.save(stream, array)
    with files.open_file(path) as stream:
        assert np.array_equal(np.load(stream), array)
    with files.open_file(path, "wb") as stream, gzip.open(stream, "wb") as compressed:
        compressed.write(b"abc")
    with files.open_file(path) as stream, gzip.open(stream) as compressed:
        assert compressed.read() == b"abc"


@every_store
def test_what_is_flushed_is_there(root):
    """A growing log is read while it is written."""
    path = files.join(root, "log")
    with files.open_file(path, "a") as stream:
        stream.write("one\n")
        stream.flush()
        assert read(path) == b"one\n"


@every_store
def test_more_than_is_written_at_once(root, monkeypatch):
    """Python's buffer writes the rest when a raw file takes only a part."""
    monkeypatch.setattr(stores, "_WRITTEN_AT_ONCE", 1000)
    content = np.random.default_rng(0).bytes(3_000_001)
    assert read(write(files.join(root, "large"), content)) == content


@every_place
def test_what_is_there(root):
    path = write(files.join(root, "inner", "file"))
    assert files.exists(root) and files.exists(path) and not files.exists(files.join(root, "other"))
    assert files.is_folder(root) and not files.is_folder(path) and not files.is_folder(files.join(root, "other"))
    assert files.is_file(path) and not files.is_file(root) and not files.is_file(files.join(root, "other"))
    assert files.size(path) == 7 and files.size(files.join(root, "other")) is None
    assert files.sha256(path) == "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    write(files.join(root, "inner-2", "file"))
    assert files.list_folder(root) == ["inner", "inner-2"] and files.list_folder(files.join(root, "inner")) == ["file"]
    assert files.list_folder(files.join(root, "other")) == []
    assert files.files_below(root) == [files.join(root, "inner-2", "file"), path]
    assert files.parent(path) == files.join(root, "inner")
    files.remove_file(path)
    files.remove_file(path)
    assert not files.exists(path)


def test_parents_of_plain_names_and_of_urls():
    """`os.path` takes the two slashes of a scheme for one."""
    pairs = {
        "run": ".",
        "runs/wiki/": "runs",
        "/run": "/",
        "gs://bucket/run/": "gs://bucket",
        "ram://run": "ram://",
        "file:///run": "file:///",
    }
    assert {path: files.parent(path) for path in pairs} == pairs
    assert files.shown("gs://bucket/run") == "gs://bucket/run" and files.shown(os.path.abspath("run")) == "run"


@every_place
def test_errors_are_the_systems(root):
    """Callers write `except OSError`, and tell a file that is missing from one that is refused."""
    path = files.join(root, "missing")
    with pytest.raises(FileNotFoundError) as caught:
        read(path)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, path)
    assert caught.value.strerror == "No such file or directory"
    with pytest.raises(OSError) as caught:
        read(root)
    assert caught.value.errno == errno.EISDIR and caught.value.filename == root
    with pytest.raises(OSError):
        files.open_file(root, "wb").close()
    with pytest.raises(FileNotFoundError):
        files.mapped(path)


def test_what_a_disk_says_comes_through_tensorflow(tmp_path):
    with pytest.raises(PermissionError) as caught:
        files.make_folder("file:///sys/keras_bert")
    assert caught.value.filename == "file:///sys/keras_bert"
    with pytest.raises(OSError) as caught, files.open_file("file:///dev/full", "w") as stream:
        stream.write("x")
    assert (caught.value.errno, caught.value.strerror) == (errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError) as caught, whole_files.atomic_write(f"file://{tmp_path}"):
        pass
    assert caught.value.filename == f"file://{tmp_path}"
    with pytest.raises(OSError) as caught, whole_files.atomic_write("file:///sys/keras_bert"):
        pass
    assert caught.value.filename == "file:///sys/keras_bert"  # Not the name of what is written aside.
    with pytest.raises(OSError) as caught:
        files.exists("nosuch://bucket/run")
    assert caught.value.strerror == "TensorFlow has no file system for nosuch://"


def test_a_failed_write_or_read_names_the_file():
    """A full disk was reported as "Writing: No space left on device", without saying which disk."""
    for content in ("x", b"x"):
        with pytest.raises(OSError) as caught, files.open_file("/dev/full", "w" if content == "x" else "wb") as stream:
            stream.write(content)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")
    for ask in ("read", "readline"):
        with pytest.raises(OSError) as caught, files.open_file("/proc/self/mem") as stream:
            getattr(stream, ask)()
        assert (caught.value.errno, caught.value.filename) == (errno.EIO, "/proc/self/mem")


@pytest.mark.parametrize("values", [1000, 100_000])
def test_an_array_that_does_not_fit_on_the_disk_is_not_written(values, tmp_path):
    """`np.save` cut a small array off in silence, and raised an `OSError` without a number for a large one."""
    path = str(tmp_path / "array.npy")
    with no_file_above(5000), pytest.raises(OSError) as caught:
        write_array(path, np.zeros(values))
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, path) and os.listdir(tmp_path) == []


@pytest.mark.parametrize("array", [np.zeros((0, 3), "int32"), np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3).T])
def test_a_written_array_is_numpys(array, tmp_path):
    write_array(tmp_path / "ours.npy", array)
    np.save(tmp_path / "numpys.npy", np.ascontiguousarray(array))
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "numpys.npy").read_bytes()
    assert np.array_equal(read_array(tmp_path / "ours.npy"), array)


def test_a_bucket_that_is_not_there_is_told(monkeypatch):
    """TensorFlow's makedirs would look for a folder above it for ever."""
    asked = []
    monkeypatch.setattr(stores, "call", lambda name, path, *_: asked.append((name, path)))
    with pytest.raises(FileNotFoundError, match="There is no gs://bucket"):
        files.make_folder("gs://bucket/runs/wiki")
    assert asked == [("exists", "gs://bucket/")]


@pytest.mark.parametrize(
    ("error", "kind", "strerror"),
    [
        (tf.errors.UnauthenticatedError(None, None, "no token"), PermissionError, "Permission denied (no token)"),
        (tf.errors.AlreadyExistsError(None, None, ""), FileExistsError, os.strerror(errno.EEXIST)),
        (tf.errors.DeadlineExceededError(None, None, "slow.\n\t when reading gs://b"), TimeoutError, "slow"),
        (tf.errors.DataLossError(None, None, "torn"), OSError, "torn"),
    ],
)
def test_errors_of_a_network(error, kind, strerror):
    with pytest.raises(kind) as caught, stores.as_os_errors("gs://b"):
        raise error
    assert (caught.value.strerror, caught.value.filename) == (strerror, "gs://b")


@every_place
def test_written_whole_or_not_at_all(root):
    path = files.join(root, "new folder", "file")
    with whole_files.atomic_write(path) as stream:
        stream.writelines(["one\n"])
    with pytest.raises(RuntimeError), whole_files.atomic_write(path) as stream:
        stream.write("two\n")
        raise RuntimeError
    assert read(path) == b"one\n" and files.list_folder(files.parent(path)) == ["file"]
    with whole_files.atomic_write(path, "wb") as stream:
        stream.write(b"three")
        assert read(path) == b"one\n"
    assert read(path) == b"three"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    """Run by root, `--output /dev/null` used to replace the device with a file."""
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.require_writable(pipe)
    with whole_files.atomic_write(pipe) as stream:
        stream.write("answers\n")
    assert os.read(end, 99) == b"answers\n" and os.listdir(tmp_path) == ["pipe"]
    os.close(end)
    assert files.is_stream(pipe) and files.is_stream(os.devnull)
    assert not any(map(files.is_stream, (tmp_path, __file__, tmp_path / "new", "ram://new")))
    with pytest.raises(UserError, match="pipe: needs a file, which can be read more than once. Received: a pipe or a"):
        expand([pipe])


def fill(folder, mark, names=("last", "a/b", "z")):
    for name in names:
        write(files.join(folder, name), mark)


@every_place
def test_a_folder_is_replaced_whole(root):
    """TensorFlow's memory, like an object store, cannot rename folders at all."""
    path = files.join(root, "model")
    with whole_files.whole_folder(path, "last") as aside:
        fill(aside, b"old", ("last", "a/b", "of the old"))
    with pytest.raises(RuntimeError), whole_files.whole_folder(path, "last") as aside:
        fill(aside, b"half")
        raise RuntimeError
    assert files.files_below(root) == [files.join(path, name) for name in ("a/b", "last", "of the old")]
    with whole_files.whole_folder(path, "last") as aside:
        fill(aside, b"new")
        assert read(files.join(path, "last")) == b"old"
    assert files.files_below(root) == [files.join(path, name) for name in ("a/b", "last", "z")]
    assert {read(file) for file in files.files_below(path)} == {b"new"}


@pytest.mark.parametrize("path", ["", ".", "./", "..", "model/.", "/"])
def test_a_folder_without_a_name_is_refused_before_anything_is_written(path, tmp_path, monkeypatch):
    """`convert MODEL .` used to end in a traceback, and leave ..partial in the working folder."""
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="needs a folder by its name"), whole_files.whole_folder(path, "last"):
        pass
    assert files.files_below(tmp_path) == [] and os.listdir(tmp_path) == ["model"]


def test_a_mount_point_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    """Such as a volume of Docker, which `prepare` failed to rename only after all text was tokenized."""
    monkeypatch.setattr(os.path, "ismount", lambda path: True)
    with pytest.raises(UserError, match="Received: a mount point. Give one inside, such as .*volume/new"):
        whole_files.require_name(tmp_path / "volume")


@every_store
@pytest.mark.parametrize("step", range(6))
def test_a_folder_half_replaced_in_a_store_does_not_look_whole(root, step, monkeypatch):
    """After a kill at any call, the folder is the old one, the new one, or lacks the file that shows it is whole."""
    path, calls = files.join(root, "model"), itertools.count()
    fill(path, b"old")
    original = stores.call

    def call(name, *args, **options):
        if name in ("remove", "rmtree", "rename") and next(calls) == step:
            raise KeyboardInterrupt
        return original(name, *args, **options)

    with pytest.raises(KeyboardInterrupt), whole_files.whole_folder(path, "last") as aside:
        fill(aside, b"new")
        monkeypatch.setattr(stores, "call", call)
    monkeypatch.undo()
    found = {file[len(path) + 1 :]: read(file) for file in files.files_below(path)}
    if "last" in found:
        assert set(found) == {"last", "a/b", "z"} and len(set(found.values())) == 1


@every_place
def test_files_for_libraries_that_want_a_name(root):
    path = files.join(root, "array.npy")
    with pytest.raises(RuntimeError), files.written_locally(path) as local:
        raise RuntimeError
    assert not files.exists(path)
    with files.written_locally(path) as local:
        np.save(local, np.arange(3))
    with files.local_copy(path) as local:
        assert os.path.isfile(local) and np.load(local).tolist() == [0, 1, 2]
    assert os.path.isfile(local) == (not files.is_remote(path))
    content = files.mapped(path)
    assert (content.dtype, content.shape, content.flags.writeable) == (np.uint8, (files.size(path),), False)
    assert content.tobytes() == read(path)
    assert files.mapped(write(path, b"")).shape == (0,)


@every_place
def test_folders_are_copied_to_any_place(root, tmp_path):
    fill(files.join(root, "source"), b"x")
    for target in (str(tmp_path / "copy"), files.join(root, "copy")):
        files.copy_folder(files.join(root, "source"), target)
        assert [file[len(target) + 1 :] for file in files.files_below(target)] == ["a/b", "last", "z"]


@every_place
def test_patterns(root):
    for name in ("a.txt", "b.txt", "c.md", "wiki/AA/0", "wiki/AB/0", "wiki/AB/c.txt"):
        write(files.join(root, name))

    def found(*patterns):
        return [path[len(root) + 1 :] for path in expand([files.join(root, pattern) for pattern in patterns])]

    assert found("*") == ["a.txt", "b.txt", "c.md"]  # No folder.
    assert found("c.md", "?.txt", "a.txt") == ["c.md", "a.txt", "b.txt"]
    assert found("wiki") == ["wiki/AA/0", "wiki/AB/0", "wiki/AB/c.txt"]
    assert found("wiki/*/0") == ["wiki/AA/0", "wiki/AB/0"]
    assert found("**/*.txt") == ["a.txt", "b.txt", "wiki/AB/c.txt"]
    assert found("wiki/**") == ["wiki/AA/0", "wiki/AB/0", "wiki/AB/c.txt"]
    with pytest.raises(UserError, match="No file matches"):
        found("*.json")
    write(files.join(root, "empty/.hidden"))
    with pytest.raises(UserError, match="empty: needs files that are not hidden. Received: none"):
        found("empty")


def test_a_folder_without_permission_to_read_is_not_empty(tmp_path, monkeypatch):
    """Its text would be left out without a word."""
    write(str(tmp_path / "wiki/AA/0"))
    write(str(tmp_path / "wiki/AB/0"))
    (tmp_path / "wiki/AB").chmod(0)
    with unprivileged(tmp_path, monkeypatch):
        for pattern in ("wiki", "wiki/AB", "wiki/AB/*", "**/0"):
            with pytest.raises(PermissionError) as caught:
                expand([pattern])
            assert caught.value.filename.rstrip("/").endswith("wiki/AB")


@every_place
def test_a_folder_and_its_glob_leave_out_what_is_no_data(root):
    """Otherwise Jupyter's copy of a table would double its rows, and Git's settings would be text to train on."""
    for name in ("a.csv", "part/b.csv", "_SUCCESS", ".b.csv.crc", ".git/config", "part/.ipynb_checkpoints/b.csv"):
        write(files.join(root, name))

    def found(pattern):
        return [path[len(root) + 1 :] for path in expand([files.join(root, pattern)])]

    for pattern in ("", "**", "**/*"):
        assert found(pattern) == ["a.csv", "part/b.csv"]
    assert found("*") == ["a.csv"]
    for pattern in (".git", ".git/*", "**/.git/*", ".*/**"):
        assert found(pattern) == [".git/config"]
    assert found("_SUCCESS") == ["_SUCCESS"] and found(".b.csv.crc") == [".b.csv.crc"]


def test_a_file_and_links_to_it_are_read_once(tmp_path, monkeypatch):
    """The text of `latest.txt`, a link to the file beside it, used to be trained on twice."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data" / "b.txt")
    write(tmp_path / "elsewhere" / "c.txt")
    for link, file in (("a.txt", "b.txt"), ("c1.txt", "../elsewhere/c.txt"), ("c2.txt", "../elsewhere/c.txt")):
        (tmp_path / "data" / link).symlink_to(file)
    for pattern in ("data", "data/*.txt", "**/data/*"):
        assert expand([pattern]) == ["data/b.txt", "data/c1.txt"]
    assert expand(["data/a.txt"]) == ["data/a.txt"]


def test_a_folder_and_its_glob_follow_links_and_read_each_folder_once(tmp_path, monkeypatch):
    """A linked corpus used to be silently left out, and one with a link to itself to be read forty times."""
    for name in ("elsewhere/c", "data/2024/b", "data/a"):
        write(tmp_path / name)
    (tmp_path / "data" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / "latest").symlink_to("2024")
    for place in ("data", "elsewhere"):
        (tmp_path / place / "round").symlink_to(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for pattern in ("data", "data/**", "**/data/**"):
        assert expand([pattern]) == ["data/2024/b", "data/a", "data/linked/c"]
    assert expand(["data/*/b"]) == ["data/2024/b"] and expand(["data/latest/*"]) == ["data/latest/b"]
    monkeypatch.chdir("data")
    assert expand(["**"]) == ["2024/b", "a", "linked/c"]
    (tmp_path / "data" / "a").unlink()
    assert files.files_below(".") == ["./2024/b"]  # Copying and moving do not follow links.


@every_place
def test_a_path_that_exists_as_typed_is_that_path(root):
    """`a[1].txt` is the name of many a download, and as a pattern it is `a1.txt`."""
    for name in ("a[1].txt", "a1.txt", "*.md", "b.md", "year [1] é/c.txt"):
        write(files.join(root, name))

    def found(pattern):
        return [path[len(root) + 1 :] for path in expand([files.join(root, pattern)])]

    assert found("a[1].txt") == ["a[1].txt"] and found("a[12].txt") == ["a1.txt"]
    assert found("*.md") == ["*.md"] and found("?.md") == ["*.md", "b.md"]
    assert found("year [1] é") == found("year [1] é/*.txt") == found("**/c.txt") == ["year [1] é/c.txt"]
    assert found("year*/?.txt") == ["year [1] é/c.txt"]


@every_place
def test_a_folder_is_expanded_with_a_slash_behind_it_too(root):
    write(files.join(root, "wiki", "AA", "0"))
    expected = [files.join(root, "wiki", "AA", "0")]
    assert expand([files.join(root, "wiki")]) == expected
    assert [os.path.normpath(path) for path in expand([files.join(root, "wiki", "")])] == [
        *map(os.path.normpath, expected)
    ]


def test_a_listing_marks_folders_by_a_slash(monkeypatch):
    """As in object stores; a second export did not take `1/` for a number."""
    monkeypatch.setattr(stores, "call", lambda name, path, *_: ["1/", "models.config", "", "10/"])
    assert files.list_folder("gs://bucket/served") == ["1", "10", "models.config"]


def test_plain_paths_need_no_tensorflow(tmp_path):
    """Help and bad arguments are answered sooner than TensorFlow could be imported."""
    program = (
        "import sys; from keras_bert.core import files, patterns, whole_files\n"
        "with whole_files.atomic_write(sys.argv[1]) as stream: stream.write('x')\n"
        "files.mapped(patterns.expand([files.parent(sys.argv[1])])[0]); files.sha256(sys.argv[1])\n"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")], check=True)


def test_a_name_that_is_no_utf8_is_read(tmp_path):
    """Old corpora have names in Latin-1; Python gives them as half surrogate pairs, which TensorFlow refuses."""
    with open(os.path.join(os.fsencode(tmp_path), b"caf\xe9.txt"), "wb") as stream:
        stream.write(b"content")
    [path] = expand([str(tmp_path)])
    assert read(path) == b"content" and expand([path]) == [path]
    assert files.size(path) == 7 and files.sha256(path)


def test_a_file_is_opened_while_another_thread_begins_to_read(tmp_path):
    """A planning thread may show a bar while the loop reads a checkpoint; the run used to end in a RuntimeError."""
    path = str(tmp_path / "file")
    with files.open_file(path, "w") as stream:
        stream.write("text")
    begun = []

    class Reading(files.BytesRead):
        def opened(self, path, stream):
            super().opened(path, stream)
            begun.append(files.BytesRead([path]))

    readings = [Reading([path]), Reading([path])]
    with files.open_file(path) as stream:
        assert stream.read() == b"text"
        assert len(begun) == 2 and [reading.position() for reading in readings] == [4, 4]
