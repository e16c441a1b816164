"""What may happen to the files of a run while nothing trains in it, for tools/torture.py."""

import os
import re

HOUR = 3600.0


def cause(folder, tried, generator):
    """Makes the accidents `tried` happen to a stopped run; returns {accident: what it was} for those that could.

    A run that has results.json, which is written last, is finished: it never opens its files again, so nothing could
    mend them.
    """
    found = {}
    if os.path.exists(os.path.join(folder, "results.json")):
        return found
    if "checkpoint" in tried:
        found["a checkpoint half-written"] = spoil_checkpoint(folder, generator)
    if "log" in tried:
        found["metrics.jsonl cut"] = cut_metrics(folder, generator)
        found["events of TensorBoard cut"] = cut_events(folder, generator)
    if "clock" in tried:
        shift_times(folder, generator)
    return {name: what for name, what in found.items() if what}


def spoil_checkpoint(folder, generator):
    """Damages the newest checkpoint, unless it is the only one: a file loses a part, its content, or is removed."""
    whole = _whole_checkpoints(folder)
    if len(whole) < 2:
        return None
    newest = whole[-1]
    path = os.path.join(newest, generator.choice(sorted(os.listdir(newest))))
    size, how = os.path.getsize(path), generator.choice(["truncated", "zeroed", "emptied", "removed"])
    if how == "removed":
        os.remove(path)
    else:
        kept = 0 if how == "emptied" else generator.randrange(size)
        os.truncate(path, kept)
        if how == "zeroed":
            os.truncate(path, size)  # A file system that lost the data but not the length reads as zeros.
    return f"{os.path.relpath(path, folder)} {how}."


def cut_metrics(folder, generator):
    """Cuts off a part of the last line of metrics.jsonl, or overwrites it with zeros.

    The lines up to a checkpoint's step are on the disk before the checkpoint. So the line is of a later step or, if
    there is none, the beginning of a new one.
    """
    from keras_bert.training.metrics_log import read_metrics

    path = os.path.join(folder, "metrics.jsonl")
    whole = _whole_checkpoints(folder)
    if not os.path.exists(path):
        return None
    saved = int(whole[-1][-9:]) if whole else 0
    with open(path, "rb") as stream:
        content = stream.read()
    lines, read = content.splitlines(keepends=True), read_metrics(path)
    if len(read) < len(lines):
        return None  # It is cut already: the run was stopped before it opened its log.
    if not read or read[-1]["step"] <= saved:
        content += (lines or [b'{"step": 1, "loss": 5.0}\n'])[-1]
        lines = content.splitlines(keepends=True)
    missing = generator.randint(2, len(lines[-1]) - 1)  # Without its newline alone, a line is whole.
    with open(path, "wb") as stream:
        stream.write(content[:-missing] + generator.choice([b"", b"\0" * missing]))
    return f"{missing} bytes of metrics.jsonl gone."


def cut_events(folder, generator):
    """Cuts the newest file of TensorBoard in the middle of a record."""
    where = os.path.join(folder, "tensorboard", "training")
    names = [name for name in os.listdir(where) if "tfevents" in name] if os.path.isdir(where) else []
    paths = sorted((os.path.join(where, name) for name in names), key=os.path.getmtime)
    if not paths or os.path.getsize(paths[-1]) < 40:
        return None
    os.truncate(paths[-1], os.path.getsize(paths[-1]) - generator.randint(1, 12))
    return f"{os.path.basename(paths[-1])} cut."


def shift_times(folder, generator):
    """Shifts the times of all files by an hour, as if the clock had been set since."""
    shift = generator.choice([-HOUR, HOUR])
    for where, _, names in os.walk(folder):
        for path in (os.path.join(where, name) for name in names):
            found = os.stat(path)
            os.utime(path, (found.st_atime + shift, found.st_mtime + shift))


def unreadable_events(folder, steps):
    """(TensorBoard's files, those that it cannot read to the end of the run), for the rows of a comparison."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    bad = []
    for name in ("training", "validation"):
        accumulator = EventAccumulator(os.path.join(folder, "tensorboard", name)).Reload()
        tags = accumulator.Tags()["tensors"]
        if "loss/loss" not in tags or accumulator.Tensors("loss/loss")[-1].step != steps:
            bad.append(name)
    return 2, bad


def _whole_checkpoints(folder):
    """The folders of the intact checkpoints, by step."""
    from keras_bert.training.checkpoints import damage_of

    where = os.path.join(folder, "checkpoints")
    names = sorted(os.listdir(where)) if os.path.isdir(where) else []
    paths = [os.path.join(where, name) for name in names if re.fullmatch(r"step-\d{9}", name)]
    return [path for path in paths if not damage_of(path)]
