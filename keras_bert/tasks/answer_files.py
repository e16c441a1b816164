"""Where answers are written as they come: a file that is there when all is done, a folder, or what goes out."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator

from keras_bert import files, whole_files
from keras_bert.errors import UserError

STANDARD_STREAM = "-"
FILE, PLAIN_FILE, FOLDER = "file", "plain file", "folder"


def check_output(output: str, needed: str):
    """Refuses in one line what cannot be written in the end, before anything is computed.

    Args:
        output: a path, or "-".
        needed: `FILE`, or `PLAIN_FILE`, which cannot be what goes out; or `FOLDER`.

    Raises:
        UserError: the output is of the other kind.
    """
    if needed == FOLDER and output == STANDARD_STREAM:
        raise UserError(
            "--output: needs a folder, as the answers are several files or of a name of their own. Received: -."
        )
    if needed == FOLDER and files.is_file(output):
        raise UserError(f"{output}: needs a folder to write the answers into. Received: a file. Give another.")
    if needed == PLAIN_FILE and output == STANDARD_STREAM:
        raise UserError("--output: needs the name of a file. Received: -.")
    if needed != FOLDER and output != STANDARD_STREAM and files.is_folder(output):
        raise UserError(f"{output}: needs a file to write. Received: a folder. Name a file in it.")


@contextlib.contextmanager
def text_output(path: str) -> Iterator[Callable[[Iterable[str]], None]]:
    """Function (texts) that appends them to a file, in UTF-8 whatever the locale; "-" is what goes out, at once.

    A file takes its name when the block ends without an error.
    """
    if path == STANDARD_STREAM:

        def write(texts):
            sys.stdout.buffer.write("".join(texts).encode("utf-8"))
            sys.stdout.buffer.flush()

        sys.stdout.flush()
        yield write
        return
    with whole_files.atomic_write(path) as stream:
        yield stream.writelines


@contextlib.contextmanager
def json_objects(folder: str, names: Iterable[str]) -> Iterator[dict[str, Callable]]:
    """`{name: function (mapping)}` that append members to the JSON object in each of these files of a folder.

    All take their names when the block ends without an error. They are what `json.dump` writes of one mapping, with an
    indent of 1, without that all of it is in memory.
    """
    files.make_folder(folder)
    with contextlib.ExitStack() as stack:
        writers = {}
        for name in names:
            stream = stack.enter_context(whole_files.atomic_write(files.join(folder, name)))
            writers[name] = _Members(stream)
        yield {name: members.add for name, members in writers.items()}
        for members in writers.values():
            members.end()


class _Members:
    """The members of one JSON object, written one after the other."""

    def __init__(self, stream):
        self._stream, self._before = stream, "{"

    def add(self, mapping):
        if mapping:
            # Without the braces and the line ends beside them.
            self._stream.write(f"{self._before}\n{json.dumps(mapping, ensure_ascii=False, indent=1)[2:-2]}")
            self._before = ","

    def end(self):
        self._stream.write("{}\n" if self._before == "{" else "\n}\n")
