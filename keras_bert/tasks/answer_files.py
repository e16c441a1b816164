"""Outputs for answers, written as they are computed: a file, which appears when complete, a folder or stdout."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from keras_bert.core import files, whole_files
from keras_bert.core.errors import UserError
from keras_bert.core.locks import folder_taken
from keras_bert.core.patterns import matched

STANDARD_STREAM = "-"
FILE, PLAIN_FILE, FOLDER = "file", "plain file", "folder"


def check_output(output: str, needed: str) -> None:
    """Checks that answers can be written to `output`, before anything is computed.

    Args:
        output: a path, or "-" for stdout.
        needed: `FILE`; `PLAIN_FILE`, which cannot be stdout; or `FOLDER`.

    Raises:
        UserError: the output is of another kind, or cannot be written.
    """
    if needed == FOLDER and output == STANDARD_STREAM:
        raise UserError(
            "--output: needs a folder, because the answers are several files or have a name of their own. Received: -."
        )
    if needed == FOLDER and files.is_file(output):
        raise UserError(f"{output}: needs a folder to write the answers into. Received: a file. Give another.")
    if needed == PLAIN_FILE and output == STANDARD_STREAM:
        raise UserError("--output: needs the name of a file. Received: -.")
    if needed != FOLDER and output != STANDARD_STREAM and files.is_folder(output):
        raise UserError(f"{output}: needs a file to write. Received: a folder. Name a file in it.")
    if output != STANDARD_STREAM:
        require_writable(output)


def require_writable(output: str) -> None:
    """Raises `UserError` if nothing can be written at this path."""
    try:
        files.require_writable(output)
    except OSError as error:
        raise UserError(f"{output}: cannot be written ({error.strerror or error}). Give another path.") from None


def require_unread(written: Iterable[str | None], read: Iterable[str | None]) -> None:
    """Raises `UserError` if a path, under whatever name, is written twice, or both written and read.

    Also refuses an existing file in a folder that is read, and a folder of answers that holds a file to read: only the
    task knows which file names it writes there.

    Args:
        written: the files and folders to write; None and "-" are ignored.
        read: the files, globs and folders to read; None, "-" and what does not exist are ignored.
    """
    named = (path for path in read if path is not None and path != STANDARD_STREAM)
    inputs = [files.real(file) for path in named for file in ([path] if files.exists(path) else matched(path))]
    outputs: list[str] = []
    for output in written:
        if output is None or output == STANDARD_STREAM:
            continue
        real = files.real(output)
        clash = [path for path in inputs if real == path or files.parent(path) == real and files.is_file(path)]
        if files.is_file(output):
            clash += [path for path in inputs if real.startswith(f"{path}/")]
        if clash or real in outputs:
            what = f"that of {clash[0]}, which is read" if clash else "that of another output"
            raise UserError(f"{output}: needs a place of its own. Received: {what}. Give another.")
        outputs.append(real)


@contextlib.contextmanager
def text_output(path: str) -> Iterator[Callable[[Iterable[str]], None]]:
    """Yields a function (texts) that appends to a file or, for "-", writes to stdout at once, always in UTF-8.

    The file appears when the block ends without an error.
    """
    if path == STANDARD_STREAM:

        def write(texts: Iterable[str]) -> None:
            sys.stdout.buffer.write("".join(texts).encode("utf-8"))
            sys.stdout.buffer.flush()

        sys.stdout.flush()
        yield write
        return
    with held(path), whole_files.atomic_write(path) as stream:
        yield stream.writelines


def held(path: str) -> contextlib.AbstractContextManager[None]:
    """Holds a lock beside a file while its content is computed.

    Two commands with the same output would write into one temporary file; in a store, each has its own until the end.

    Raises `UserError` if another process holds it.
    """
    return contextlib.nullcontext() if files.is_remote(path) or files.is_stream(path) else folder_taken(path)


def json_line(row: Mapping[str, Any]) -> str:
    """A row as a line of JSON."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def with_texts(texts: Mapping[str, str], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The texts by column plus the answer's fields, prefixed with `answer_` while a column has their name."""
    row: dict[str, Any] = dict(texts)
    for name, value in answer.items():
        while name in texts:
            name = f"answer_{name}"
        row[name] = value
    return row


@contextlib.contextmanager
def json_objects(folder: str, names: Iterable[str]) -> Iterator[dict[str, Callable[[Mapping[str, Any]], None]]]:
    """Yields `{name: function (mapping)}`, which append members to the JSON objects in these files of a folder.

    The files appear when the block ends without an error. Each is what `json.dump` writes for the whole mapping with an
    indent of 1, but the whole mapping is never in memory.
    """
    files.make_folder(folder)
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(_json_object(files.join(folder, name))) for name in names}


@contextlib.contextmanager
def _json_object(path: str) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    before = "{"

    def add(members: Mapping[str, Any]) -> None:
        nonlocal before
        if members:
            # Strip the braces and the line breaks next to them.
            stream.write(f"{before}\n{json.dumps(members, ensure_ascii=False, indent=1)[2:-2]}")
            before = ","

    with held(path), whole_files.atomic_write(path) as stream:
        yield add
        stream.write("{}\n" if before == "{" else "\n}\n")
