"""Whether a run reads what it began with: `data.json` in its folder."""

import functools

from keras_bert import files, settings, whole_files
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.shards.unfinished import difference
from keras_bert.errors import UserError

FILE = "data.json"


def require_same_data(run, problem):
    """Keeps what a run reads, or compares it with what the run in this folder has read so far.

    A file is known by its SHA-256. One of the same size and time as before is not read for that.

    Args:
        run: the `RunFolder`, settled.
        problem: the `Problem`.

    Raises:
        UserError: names the files that are others than when the run learned from them.
    """
    before = _before(run)
    now = {split: _fingerprint(problem, split, before.get(split)) for split in ("train", *problem.dev_splits)}
    changed = [_change(split, before[split], now[split]) for split in now if split in before]
    _keep(run, before, now, "; ".join(filter(None, changed)))


def require_same_text(run, entries):
    """As `require_same_data`, for text that is read as it is, which may fill a disk: by the names and sizes alone.

    Args:
        run: the `RunFolder`, settled.
        entries: as for `Corpus`.
    """
    before, now = _before(run), {"text": Corpus(entries).fingerprint()}
    is_other = "text" in before and before != now
    _keep(run, before, now, is_other and difference(before["text"], now["text"]))


def _before(run):
    path = files.join(run.path, FILE)
    # A start that failed before anything was learned binds nobody.
    return settings.read_json(path) if run.has_begun() and files.exists(path) else {}


def _keep(run, before, now, changed):
    if changed:
        raise UserError(
            f"{run.path}: holds a run on other data ({changed}). Put back what it began with to go on, --fresh to "
            "start over in a new folder, or give another --output."
        )
    if now != before:
        whole_files.write_json(files.join(run.path, FILE), now)


def _fingerprint(problem, split, before):
    """`{"from", "bytes", "modified", "sha256"}` of a split's file; of a data set `{"from", "examples"}`."""
    origin = problem.origin(split)
    size = files.size(origin)
    if size is None:
        return {"from": origin, "examples": len(problem.rows(split))}
    found = {"from": origin, "bytes": size, "modified": files.modified(origin)}
    is_untouched = before and found["modified"] and {**before, **found} == before
    return {**found, "sha256": before.get("sha256") if is_untouched else _sha256(*found.values())}


@functools.lru_cache
def _sha256(path, size, modified):
    """Of a file, computed once for all seeds and points of a grid."""
    return files.sha256(path)


def _change(split, before, now):
    """What is different, in words; None where nothing is."""
    if "sha256" in before and before["sha256"] == now.get("sha256"):
        return None  # Wherever it stands.
    for key, what in (("bytes", "bytes"), ("sha256", "SHA-256"), ("examples", "examples"), ("from", "source")):
        if before.get(key) != now.get(key):
            return f"{split}, {now['from']}: {what} {_shown(before.get(key))} there, {_shown(now.get(key))} now"
    return None


def _shown(value):
    return f"{value:,}" if isinstance(value, int) else f"{str(value)[:12]}…" if len(str(value)) == 64 else value
