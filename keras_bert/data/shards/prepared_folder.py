"""The folder that `prepare` writes: who may write it, where the work is done, and when it is complete."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keras_bert.data.corpus.held_out import SIDES
from keras_bert.data.shards.unfinished import PARTS, UnfinishedWork
from keras_bert.errors import UserError
from keras_bert.files import (
    StrPath,
    exists,
    is_file,
    is_folder,
    is_remote,
    join,
    list_folder,
    remove_file,
    remove_folder,
)
from keras_bert.locks import NAME, require_own, take_folder
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.whole_files import move_folder

_VOCABULARY_FILES = (Vocabulary.file_name, SentencePieceVocabulary.file_name)


def is_prepared(path: str) -> bool:
    """Whether `prepare` wrote this folder completely."""
    return all(exists(join(path, side, "meta.json")) for side in SIDES) and vocabulary_in(path) is not None


def vocabulary_in(folder: str) -> str | None:
    """The path of the vocabulary in a folder that `prepare` or a run wrote; None if there is none."""
    return next(filter(exists, (join(folder, name) for name in _VOCABULARY_FILES)), None)


@contextmanager
def prepared_folder(
    folder: StrPath,
    vocabulary: Vocabulary,
    settings: Mapping[str, Any],
    report: Callable[[str], object] | None = None,
) -> Iterator[tuple[UnfinishedWork, Callable[[], None]]]:
    """Holds the lock on `folder` during the block, which writes its shards.

    The work is done in `folder.partial`, which is renamed at the end. In a store, where renaming would copy every file,
    it is done in `folder` itself, and the vocabulary is written last. If the block fails, finished work stays.

    Args:
        folder: a folder that does not exist or is empty.
        vocabulary: the pieces.
        settings: JSON values that the bytes of the result depend on.
        report: receives a line of text while waiting for the lock.

    Yields:
        (the record of the work so far, a function that raises `UserError` if the lock was lost)

    Raises:
        UserError: the folder is not empty; the unfinished work in it is damaged or was started with other settings; or
            another process is preparing the same folder.
    """
    folder = os.fspath(folder).rstrip("/")
    # Beside the folder, which only gets its name at the end. In a store it has it from the start, and may be a bucket.
    path = join(folder, NAME) if is_remote(folder) else f"{folder}{NAME}"
    lock = take_folder(folder, path, report or (lambda line: None))
    try:
        # A process killed between renaming and the end of the work leaves the record in the finished folder.
        in_place = is_remote(folder) or UnfinishedWork.is_in(folder)
        partial = folder if in_place else f"{folder}.partial"
        if not (in_place and UnfinishedWork.is_in(folder)):
            _check_is_empty(folder)
        work = UnfinishedWork(partial, settings)
        if not _is_worth_keeping(work):
            _clear(partial)
            if in_place:
                work.save()  # Otherwise a folder with an unfinished first shard would look like someone else's.
        try:
            yield work, lambda: require_own(lock, folder)
            vocabulary.to_file(join(partial, vocabulary.file_name))
        except BaseException:
            if not _is_worth_keeping(work):
                _clear(partial)
            raise
        if not in_place:
            move_folder(partial, folder, last=vocabulary.file_name)
        UnfinishedWork.remove(folder)
        remove_folder(join(folder, PARTS))
    finally:
        lock.release()


def _is_worth_keeping(work: UnfinishedWork) -> bool:
    return bool(work.shards() or work.parts())


def _clear(folder: str) -> None:
    """Removes everything in a folder except its lock, and then the folder itself if it is empty."""
    for name in list_folder(folder):
        if name != NAME:
            path = join(folder, name)
            remove_folder(path) if is_folder(path) else remove_file(path)
    if not list_folder(folder):
        remove_folder(folder)


def _check_is_empty(folder: str) -> None:
    if is_file(folder):
        raise UserError(f"{folder}: needs a folder. Received: a file. Give another path.")
    names = [name for name in list_folder(folder) if name != NAME]
    if names:
        raise UserError(
            f"{folder}: needs a new or empty folder. Received: one that contains {names[0]}. Remove it or give another."
        )
