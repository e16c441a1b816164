"""Files of features: data is read from where it was written, and incomplete or foreign files are rejected."""

import errno
import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from said import listen

from keras_bert.core.errors import UserError
from keras_bert.core.messages import LOGGER
from keras_bert.data.batches import feature_files
from keras_bert.data.batches.feature_files import FeatureRoom, feature_bytes
from keras_bert.data.batches.length_batches import LengthBatches
from keras_bert.data.batches.token_rows import TokenRows

MADE_OF = {"encoder": "abc", "layers": [1, 2]}


def write(room, values, made_of=MADE_OF):
    """In parts, later ones first."""
    with room.writing("train", made_of, values.shape) as put:
        put(3, values[3:])
        put(0, values[:3])


def opened(room, values, made_of=MADE_OF):
    said = listen()
    return room.open("train", made_of, values.shape), said


@pytest.fixture
def values():
    return np.random.default_rng(0).normal(size=(50, 2, 20)).astype("float32")


@pytest.mark.parametrize("shape", [(50, 2, 20), (9, 1, 16), (5, 12, 100), (7, 4, 1)])
def test_every_token_is_read_at_its_place(tmp_path, shape):
    values = np.random.default_rng(0).normal(size=shape).astype("float32")
    room = FeatureRoom(str(tmp_path))
    write(room, values)
    file, said = opened(room, values)
    assert not said and os.path.getsize(file.path) == feature_bytes(shape)
    places = np.random.default_rng(1).integers(0, len(values), (3, 6))
    np.testing.assert_array_equal(file.read(tf.constant(places)), values[places])
    np.testing.assert_array_equal(np.load(file.path, mmap_mode="r"), values)


def test_batches_have_each_rows_own_features_and_0_at_padding(tmp_path, values):
    room = FeatureRoom(str(tmp_path))
    write(room, values)
    starts = np.array([0, 3, 10, 30, 50])
    rows = TokenRows(np.arange(50, dtype="int32"), starts, np.diff(starts).astype("int32"), {})
    rows.token_files["features"] = opened(room, values)[0]
    seen = []
    for batch in LengthBatches(rows, 3, 0, 0, [8, 24]).epoch(1).as_numpy_iterator():
        for number, features, mask in zip(batch["row_numbers"], batch["features"], batch["input_mask"]):
            if number >= 0:
                expected = values[starts[number] : starts[number + 1]]
                np.testing.assert_array_equal(features[: len(expected)], expected)
                seen.append(number)
            assert not features[mask == 0].any()
    assert sorted(seen) == [0, 1, 2, 3]


def damage_a_value(folder):
    with open(os.path.join(folder, "features.npy"), "r+b") as stream:
        stream.seek(-5, os.SEEK_END)
        byte = stream.read(1)
        stream.seek(-5, os.SEEK_END)
        stream.write(bytes([byte[0] ^ 1]))


def cut_off(folder):
    path = os.path.join(folder, "features.npy")
    os.truncate(path, os.path.getsize(path) - 4)


def tell_nothing(folder):
    os.unlink(os.path.join(folder, "made_of.json"))


def tell_another(folder):
    path = os.path.join(folder, "made_of.json")
    told = json.load(open(path, encoding="utf-8"))
    json.dump({**told, "made_of": {**MADE_OF, "encoder": "other"}}, open(path, "w", encoding="utf-8"))


def nest_too_deep(folder):
    with open(os.path.join(folder, "made_of.json"), "w", encoding="utf-8") as stream:
        stream.write("[" * 100_000)


@pytest.mark.parametrize(
    "spoil, reason",
    [
        (damage_a_value, "is damaged"),
        (cut_off, "bytes and needs"),
        (tell_nothing, "cannot be read"),
        (nest_too_deep, "cannot be read"),
        (tell_another, "was made from something else"),
    ],
)
def test_what_is_damaged_or_foreign_is_said_and_made_anew(tmp_path, values, spoil, reason):
    room = FeatureRoom(str(tmp_path))
    write(room, values)
    spoil(room.folder("train", MADE_OF))
    file, said = opened(room, values)
    assert file is None and reason in said[0] and said[0].endswith("The features are computed again.")
    write(room, values)
    assert opened(room, values)[0]


def test_others_features_are_not_taken(tmp_path, values):
    room = FeatureRoom(str(tmp_path))
    write(room, values)
    file, said = opened(room, values, {**MADE_OF, "layers": [1, 3]})
    assert file is None and not said


def test_what_was_not_written_to_the_end_is_not_there(tmp_path, values):
    room = FeatureRoom(str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        with room.writing("train", MADE_OF, values.shape) as put:
            put(0, values[:3])
            raise KeyboardInterrupt
    assert opened(room, values) == (None, []) and not os.listdir(tmp_path)


def test_a_full_disk_is_told_before_anything_is_computed(tmp_path, monkeypatch):
    room = FeatureRoom(str(tmp_path))
    usage = feature_files.shutil.disk_usage(tmp_path)._replace(free=2_000_000_000)
    monkeypatch.setattr(feature_files.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UserError, match=r"needs 3.0 GB for the features. Received: 2.0 GB of free space"):
        room.require_space(3_000_000_000)
    room.require_space(1_000_000_000)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EDQUOT, "Free some space"),
        (errno.EFBIG, "Free some space"),
        (errno.EACCES, "Make the folder writable"),
        (errno.EROFS, "Make the folder writable"),
        (errno.EIO, "Check the disk or the store"),
    ],
)
def test_what_to_do_depends_on_why_it_cannot_be_written(tmp_path, values, number, remedy):
    with pytest.raises(UserError, match=f"{os.strerror(number)}.*{remedy}, or use another folder"):
        with FeatureRoom(str(tmp_path)).writing("train", MADE_OF, values.shape):
            raise OSError(number, os.strerror(number))


def test_features_in_a_store_are_mapped_from_a_copy(values):
    """A store allows no random writes, locks or memory maps."""
    room = FeatureRoom("ram://features")
    with room.alone():
        write(room, values)
    (file, said), places = opened(room, values), np.array([[7, 0], [49, 3]])
    assert not said and file.path.startswith("ram://features/train-")
    np.testing.assert_array_equal(file.read(tf.constant(places)), values[places])
    with tf.io.gfile.GFile(file.path, "ab") as stream:
        stream.write(b"x")
    file, (line,) = opened(room, values)
    assert file is None and "and needs" in line


def test_two_runs_do_not_make_the_same_features_at_once(tmp_path):
    """The second says that it waits, and goes on once the first is done or killed."""
    holder = (
        "import fcntl, sys; lock = open(sys.argv[1], 'w'); fcntl.flock(lock, fcntl.LOCK_EX); "
        "print('held', flush=True); sys.stdin.read()"
    )
    room = FeatureRoom(str(tmp_path))
    command = [sys.executable, "-c", holder, os.path.join(room.path, ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        said = listen()
        killing = logging.Handler()
        killing.emit = lambda record: process.kill()
        LOGGER.addHandler(killing)
        with room.alone():
            assert "waiting for it" in said[0]
    LOGGER.removeHandler(killing)
    with room.alone():
        assert len(said) == 1
