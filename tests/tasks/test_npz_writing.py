"""A .npz file written row by row is one that NumPy reads, or does not exist."""

import errno
import io
import os

import numpy as np
import pytest
import tensorflow as tf
from full_disk import no_file_above

from keras_bert.core.errors import UserError
from keras_bert.tasks.vector_files import NpzWriter


def test_arrays_grow_and_are_read_back(tmp_path):
    path = tmp_path / "new" / "arrays.npz"
    with NpzWriter(path) as arrays:
        for start in (0, 3, 6):
            arrays.append("vectors", np.arange(start * 2, start * 2 + 6, dtype="float32").reshape(3, 2))
            arrays.append("ids", np.array([start], "int64"))
        arrays.append("none", np.zeros((0, 4), "int32"))
        assert arrays.shapes["vectors"] == (9, 2)
        assert os.listdir(path.parent) == ["arrays.npz.lock"]
    with np.load(path, allow_pickle=False) as read:
        np.testing.assert_array_equal(read["vectors"], np.arange(18, dtype="float32").reshape(9, 2))
        assert read["ids"].dtype == "int64" and read["ids"].tolist() == [0, 3, 6]
        assert read["none"].shape == (0, 4)
    assert os.listdir(path.parent) == ["arrays.npz"]


def test_columns_of_another_array_are_written_in_order(tmp_path):
    """The rows do not lie side by side in memory."""
    values = np.arange(12, dtype="int32").reshape(3, 4)
    with NpzWriter(tmp_path / "arrays.npz") as arrays:
        arrays.append("part", values[:, ::2])
    np.testing.assert_array_equal(np.load(tmp_path / "arrays.npz")["part"], values[:, ::2])


def test_an_error_on_the_way_leaves_what_was_there(tmp_path):
    path = tmp_path / "arrays.npz"
    path.write_bytes(b"before")
    with pytest.raises(RuntimeError), NpzWriter(path) as arrays:
        arrays.append("rows", np.ones(3))
        raise RuntimeError
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["arrays.npz"]


def test_a_disk_that_gets_full_is_named(tmp_path):
    """The rows wait in a file without a name."""
    path = str(tmp_path / "arrays.npz")
    with no_file_above(5000), pytest.raises(OSError) as caught, NpzWriter(path) as arrays:
        arrays.append("rows", np.ones(100_000))
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, path)


def test_a_folder_is_refused_before_the_work(tmp_path):
    with pytest.raises(UserError, match="needs a file to write"):
        NpzWriter(tmp_path)


def test_a_second_command_that_writes_the_file_is_refused(tmp_path):
    """Both wrote into one temporary file, which the first to end renamed."""
    path = tmp_path / "arrays.npz"
    with NpzWriter(path) as arrays:
        arrays.append("rows", np.arange(5))
        with pytest.raises(UserError, match="arrays.npz: in use by process .* or give another --output."):
            NpzWriter(path).__enter__()
    assert np.load(path)["rows"].tolist() == [0, 1, 2, 3, 4] and os.listdir(tmp_path) == ["arrays.npz"]


def test_remote_paths_are_written_without_going_back():
    """`tf.io.gfile`, here in memory, stands for gs://, where a file is written from start to end."""
    path = "ram://arrays.npz"
    with NpzWriter(path) as arrays:
        arrays.append("rows", np.arange(5))
    with tf.io.gfile.GFile(path, "rb") as stream:
        assert np.load(io.BytesIO(stream.read()))["rows"].tolist() == [0, 1, 2, 3, 4]
