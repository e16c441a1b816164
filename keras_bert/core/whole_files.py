"""Writing files and folders that are complete or absent, whatever interrupts it.

Not all stores can rename a folder: an object store copies its files one by one. There, one file marks a folder as
complete; it is written last and removed first; see `move_folder`.
"""

import contextlib
import errno
import json
import math
import os
import uuid
from collections.abc import Iterator, Mapping
from typing import IO, Any

from keras_bert.core import disks, files, stores
from keras_bert.core.errors import UserError


@contextlib.contextmanager
def atomic_write(path: files.StrPath, mode: str = "w", work_folder: str | None = None) -> Iterator[IO[Any]]:
    """Opens a temporary file beside `path`, which replaces `path` when the block ends without an error.

    Readers of `path` see the old file or the new one: a disk renames atomically, an object store copies the finished
    file to `path` and then removes the temporary one. The folder is made if it does not exist.

    Processes that may write the same content to the same path at the same time need a `work_folder`, on the same disk
    or store, for temporary files with names of their own. A device or a pipe is written to directly.
    """
    path = os.fspath(path)
    aside = files.join(work_folder, f"{uuid.uuid4().hex}.partial") if work_folder else f"{path}.partial"
    newline = None if "b" in mode else "\n"
    if files.is_stream(path):
        with files.open_file(path, mode, newline=newline) as stream:
            yield stream
        return
    try:
        with _opened_in_new_folder(aside, mode, newline) as stream:
            yield stream
            stream.flush()
            if not files.is_remote(path):
                os.fsync(stream.fileno())
        rename_file(aside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            files.remove_file(aside)
        if isinstance(error, OSError) and error.filename == aside:
            error.filename = path  # The name that the user knows.
        raise


def write_file(path: files.StrPath, content: str | bytes, work_folder: str | None = None) -> None:
    """Writes a file by `atomic_write`."""
    with atomic_write(path, "wb" if isinstance(content, bytes) else "w", work_folder) as stream:
        stream.write(content)


def rename_file(source: str, target: str) -> None:
    """Renames a file within a disk or a store, replacing `target` if it exists."""
    if files.is_remote(target):
        stores.call("rename", source, target, overwrite=True)
    else:
        disks.rename_file(source, target)


def write_json(path: files.StrPath, values: Any, ensure_ascii: bool = True) -> None:
    write_file(path, json_text(values, indent=2, ensure_ascii=ensure_ascii) + "\n")


def json_text(values: Any, **options: Any) -> str:
    """`json.dumps` with null for NaN and infinite numbers, which JSON lacks and most readers refuse."""
    return json.dumps(_with_nulls(values), allow_nan=False, **options)


def _with_nulls(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {key: _with_nulls(value) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [_with_nulls(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


def require_name(path: files.StrPath) -> None:
    """Raises `UserError` if `path` is on a disk and cannot be the target of a rename: ".", ".." or a mount point.

    A folder is first written beside its path, and then renamed.
    """
    if files.is_remote(path):
        return
    name = os.path.basename(os.fspath(path).rstrip("/"))
    is_mounted = os.path.ismount(path)
    if is_mounted or name in ("", os.curdir, os.pardir):
        raise UserError(
            f"{path}: needs a folder by its name, which it gets once all of it is written. Received: "
            f"{'a mount point' if is_mounted else repr(name)}. Give one inside, such as {files.join(path, 'new')}."
        )


@contextlib.contextmanager
def whole_folder(path: files.StrPath, last: str) -> Iterator[str]:
    """Makes a temporary folder beside `path`, which replaces `path` when the block ends without an error.

    `last` is the file that marks the folder as complete; see `move_folder` for what readers see meanwhile. Raises
    `UserError` for "." and the like; see `require_name`.
    """
    require_name(path)
    if files.is_file(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path))
    aside = f"{os.fspath(path).rstrip('/')}.partial"
    files.remove_folder(aside)
    files.make_folder(aside)
    try:
        yield aside
    except BaseException as error:
        files.remove_folder(aside)
        if isinstance(error, OSError) and str(error.filename).startswith(aside):
            error.filename = str(error.filename).replace(aside, os.fspath(path).rstrip("/"), 1)
        raise
    move_folder(aside, path, last)


def move_folder(source: files.StrPath, target: files.StrPath, last: str) -> None:
    """Renames a folder, replacing `target` if it exists.

    Args:
        source, target: paths in the same store, or on the same disk.
        last: the file that marks the folders as complete.

    On a disk the folder is synced before and the old one removed after; at any instant `surviving_folder` finds the old
    or the new one. In a store the files move one by one, because a folder there is only a common prefix of names.
    `last` is removed from the old folder first and moved to the new one last: readers meanwhile see the old folder, a
    partial one or the new one, never a mixture that looks complete. After an interruption some files are under the old
    name, others under the new one.
    """
    if not files.is_remote(target):
        disks.replace_folder(source, target)
        return
    remove_whole(target, last)
    first = len(files.join(source, ""))
    names = [path[first:] for path in files.files_below(source)]
    for folder in sorted({files.parent(files.join(target, name)) for name in names}):
        files.make_folder(folder)
    for name in sorted(names, key=lambda name: (name == last, name)):
        stores.call("rename", files.join(source, name), files.join(target, name), overwrite=True)
    files.remove_folder(source)


def remove_whole(path: files.StrPath, last: str) -> None:
    """Removes a folder so that whatever an interruption leaves of it does not look complete.

    Args:
        last: the file that marks the folder as complete.
    """
    if files.is_remote(path):
        files.remove_file(files.join(path, last))
        files.remove_tree(path)
    else:
        disks.remove_whole(path)


def surviving_folder(path: files.StrPath) -> str:
    """The current path of the folder `path`: itself or, on a disk, where a kill while replacing it left the old one."""
    return os.fspath(path) if files.is_remote(path) else disks.surviving_folder(path)


def _opened_in_new_folder(path: str, mode: str, newline: str | None) -> IO[Any]:
    try:
        return files.open_file(path, mode, newline=newline)
    except FileNotFoundError:
        files.make_folder(files.parent(path))
        return files.open_file(path, mode, newline=newline)
