"""Checks that a run still has the data and teacher it started with: `data.json` and `teacher.json` in its folder.

Several runs of a command, and a run with LoRA, also need the weights that they started from: `init.json`. And a run's
batches keep their number of shapes: `shapes.json`.
"""

import functools
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from keras_bert.checkpoints.model_folder import ModelFolder
from keras_bert.core import files, whole_files
from keras_bert.core.errors import UserError
from keras_bert.core.patterns import matched
from keras_bert.core.yaml_and_json import read_if_there
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.shards.prepared_folder import difference
from keras_bert.data.tables.tables import table_files
from keras_bert.tasks.problem import Problem
from keras_bert.training.run_folder import RunFolder, given_name

FILE = "data.json"
TEACHER = "teacher.json"
SHAPES = "shapes.json"


def require_same_data(run: RunFolder, problem: Problem) -> None:
    """Records the files that a run reads, or compares them with those that the run in this folder has read so far.

    A file is identified by its SHA-256, which is recomputed only if its size, modification time or mark has changed.

    Args:
        run: the run's folder, claimed (see `RunFolder.claim`).

    Raises:
        UserError: files have changed since the run learned from them; names them.
    """
    before = _before(run, FILE)
    now = {split: _fingerprint(problem, split, before.get(split, {})) for split in ("train", *problem.dev_splits)}
    changed = [_change(split, before[split], now[split]) for split in now if split in before]
    _record(run, FILE, before, now, "; ".join(filter(None, changed)))


def data_changes(run: str, problem: Problem, splits: Iterable[str]) -> list[str]:
    """Says which splits have changed since the run in this folder read them; skips those that it did not read."""
    recorded, changed = read_if_there(files.join(run, FILE)), []
    for split in splits:
        before = recorded.get(split, {})
        if before.get("from") == problem.origin(split):
            changed.append(_change(split, before, _fingerprint(problem, split, before)))
    return [f"Not the data that {run} was trained with: {change}." for change in changed if change]


def require_same_text(run: RunFolder, entries: Iterable[str]) -> None:
    """Like `require_same_data`, for raw text, which may fill a disk: compares names, sizes and `files.content_mark`.

    Args:
        run: the run's folder, claimed (see `RunFolder.claim`).
        entries: as for `Corpus`.
    """
    before, now = _before(run, FILE), {"text": Corpus(entries).fingerprint()}
    _record(run, FILE, before, now, text_difference(before["text"], now["text"]) if "text" in before else "")


def text_difference(before: Iterable[list[Any]], now: Iterable[list[Any]]) -> str:
    """The `difference` of two fingerprints of text, ignoring the folder of files that were given as objects."""
    return difference(*([[given_name(path), *of_file] for path, *of_file in entries] for entries in (before, now)))


def require_same_model(run: RunFolder, file: str, model: ModelFolder) -> None:
    """Like `require_same_data`, but for a model, whose name and SHA-256 of its weights are recorded.

    Args:
        file: `TEACHER`, for the run's teacher; or `INIT`, for what a run, or several in a folder, started from.
    """
    before, now = _before(run, file), {"from": model.name, "sha256": model.fingerprint}
    changed = _change(file.removesuffix(".json"), before, now) if before else None
    _record(run, file, before, now, changed or "")


def begun_shapes(run: RunFolder, affordable: int) -> int:
    """The most shapes of a run's batches: `affordable` for a new run, the recorded number for one that has begun.

    More epochs or another device can afford more. But an epoch laid out anew after some of its steps would have some
    rows twice and others not at all.
    """
    before = _before(run, SHAPES)
    now = before or {"most": affordable}
    _record(run, SHAPES, before, now, "")
    return now["most"]


def require_unchanged(run: RunFolder, changed: str) -> None:
    """Raises `UserError` if anything has changed; `changed` says what, in words."""
    if changed:
        raise UserError(
            f"{run.path}: holds a run on other data ({changed}). Restore the data it started with to resume it, "
            "--fresh to start over in a new folder, or give another --output."
        )


def _before(run: RunFolder, name: str) -> dict[str, Any]:
    path = files.join(run.path, name)
    # A run that failed before it learned anything may change its data.
    return read_if_there(path) if run.any_has_begun() else {}


def _record(run: RunFolder, name: str, before: Mapping[str, Any], now: Mapping[str, Any], changed: str) -> None:
    require_unchanged(run, changed)
    if now != before:
        whole_files.write_json(files.join(run.path, name), now)


def _fingerprint(problem: Problem, split: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """`{"from", "examples"}` of a split and, of its files, `{"bytes", "modified", "mark", "sha256"}`."""
    origin = problem.origin(split)
    counted = {"from": origin, "examples": len(problem.rows(split))}
    if not matched(origin):
        return counted
    paths = table_files(origin)[1]
    size, modified = sum(files.size(path) or 0 for path in paths), max(map(files.modified, paths))
    marks = [files.content_mark(path) for path in paths]
    found = {**counted, "bytes": size, "modified": modified, "mark": marks if len(marks) > 1 else marks[0]}
    is_untouched = before and modified and {**before, **found} == before
    return {**found, "sha256": before.get("sha256") if is_untouched else _sha256(tuple(paths), size, modified)}


@functools.lru_cache
def _sha256(paths: tuple[str, ...], size: int, modified: float) -> str:
    """The SHA-256 of a file, or of the hashes of several, computed once for all seeds and points of a grid."""
    found = [files.sha256(path) for path in paths]
    return found[0] if len(found) == 1 else hashlib.sha256("".join(found).encode()).hexdigest()


def _change(split: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The change in words; None if nothing has changed."""
    if "sha256" in before and before["sha256"] == now.get("sha256"):
        return None  # The same content, perhaps in another place.
    for key, what in (("bytes", "bytes"), ("sha256", "SHA-256"), ("examples", "examples"), ("from", "source")):
        if key in before and before[key] != now.get(key):  # Older versions did not record all of them.
            return f"{split}, {now['from']}: {what}: was {_shown(before[key])}, now {_shown(now.get(key))}"
    return None


def _shown(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    return f"{text[:12]}…" if len(text) == 64 else text  # The start of a SHA-256.
