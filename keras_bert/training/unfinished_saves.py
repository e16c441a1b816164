"""Checkpoints in a store that a kill left without the file that makes them complete."""

from keras_bert import files

STATE = "state.json"  # Written last and removed first; see `whole_files.move_folder`.


def is_unfinished(folder: str) -> bool:
    """Whether a checkpoint's folder is a part of one, whose save or removal was interrupted.

    Only in a store, where files move one by one: a disk renames whole folders, so that there a missing file is damage.
    """
    return files.is_remote(folder) and not files.exists(files.join(folder, STATE))
