"""Renaming on a disk: what is found after a kill at any instant, and what is on the disk before it counts."""

import os

import pytest

from keras_bert.core import disks, files, whole_files


def fill(folder, mark):
    for name in ("config.json", "weights", "a/b"):
        with whole_files.atomic_write(os.path.join(folder, name)) as stream:
            stream.write(mark)


def marks(folder):
    """{path in the folder: content}."""
    return {os.path.relpath(path, folder): open(path, encoding="utf-8").read() for path in files.files_below(folder)}


WHOLE = {mark: dict.fromkeys(("config.json", "weights", "a/b"), mark) for mark in ("old", "new")}


def replace(folder):
    with whole_files.whole_folder(folder, "config.json") as aside:
        fill(aside, "new")


def test_killed_at_any_instant_a_replaced_folder_is_the_old_or_the_new_one(tmp_path, killed_at):
    """A kill between removing the old model and renaming the new one used to leave none."""
    found = []
    for instant in range(1000):
        folder = str(tmp_path / str(instant) / "model")
        fill(folder, "old")
        is_over = killed_at(instant, lambda folder=folder: replace(folder))
        standing = marks(whole_files.surviving_folder(folder))
        assert standing in WHOLE.values(), f"killed at the call numbered {instant}"
        found.append(standing["weights"])
        replace(folder)  # What the kill left is in nobody's way.
        assert marks(folder) == WHOLE["new"] and os.listdir(tmp_path / str(instant)) == ["model"]
        if is_over:
            break
    assert is_over and found == sorted(found, reverse=True) and {*found} == {"old", "new"}


def test_a_part_of_an_old_folder_is_never_found(tmp_path, killed_at):
    """When the user removes the new one, what a kill left of the old one must not take its place."""
    for instant in range(1000):
        folder = tmp_path / str(instant) / "model"
        fill(str(folder), "old")
        is_over = killed_at(instant, lambda folder=folder: replace(str(folder)))
        disks.remove_tree(str(folder))
        assert marks(whole_files.surviving_folder(str(folder))) in ({}, WHOLE["old"])
        if is_over:
            break


def test_a_backup_of_ones_own_beside_it_stays(tmp_path):
    fill(str(tmp_path / "model"), "old")
    fill(str(tmp_path / "model.old"), "mine")
    replace(str(tmp_path / "model"))
    assert marks(str(tmp_path / "model.old"))["weights"] == "mine"


def test_all_is_on_the_disk_before_it_has_its_name_and_before_the_old_goes(tmp_path, disk_calls):
    """Otherwise, after a power cut, a new name may stand for files that were never written."""
    folder = str(tmp_path / "model")
    fill(folder, "old")
    with whole_files.whole_folder(folder, "config.json") as aside:
        os.makedirs(f"{aside}/a")
        for name in ("config.json", "weights", "a/b"):  # Written as by a library, which syncs nothing.
            with open(f"{aside}/{name}", "w", encoding="utf-8") as stream:
                stream.write("new")
        disk_calls.clear()
    named = disk_calls.index(("rename", aside, folder))
    for path in (f"{aside}/config.json", f"{aside}/weights", f"{aside}/a/b", f"{aside}/a", aside):
        assert ("fsync", path) in disk_calls[:named], path
    dropped = disk_calls.index(("rename", f"{folder}.replaced", f"{folder}.replaced.partial"))
    assert ("fsync", str(tmp_path)) in disk_calls[named:dropped]


def test_a_file_has_its_name_on_the_disk(tmp_path, disk_calls):
    path = str(tmp_path / "new" / "file")
    with whole_files.atomic_write(path) as stream:
        stream.write("x")
    renamed = disk_calls.index(("rename", f"{path}.partial", path))
    assert ("fsync", f"{path}.partial") in disk_calls[:renamed]
    assert ("fsync", str(tmp_path)) in disk_calls[:renamed]  # It holds the name of the new folder.
    assert disk_calls[renamed + 1] == ("fsync", str(tmp_path / "new"))


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path):
    fill(str(tmp_path / "large disk"), "old")
    os.symlink(tmp_path / "large disk", tmp_path / "model")
    replace(str(tmp_path / "model"))
    assert sorted(os.listdir(tmp_path)) == ["large disk", "model"]
    assert marks(str(tmp_path / "model")) == WHOLE["new"] and marks(str(tmp_path / "large disk")) == WHOLE["old"]


def test_a_folder_in_place_of_a_file_is_refused_before_it_is_made(tmp_path):
    (tmp_path / "model").write_text("mine")
    with pytest.raises(NotADirectoryError):
        replace(str(tmp_path / "model"))
    assert os.listdir(tmp_path) == ["model"]


def test_one_that_cannot_be_renamed_leaves_the_old_one(tmp_path, monkeypatch):
    folder, rename = str(tmp_path / "model"), os.rename
    fill(folder, "old")

    def refuse(source, target):
        if source.endswith(".partial") and target == folder:
            raise PermissionError(13, "Permission denied", target)
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(PermissionError):
        replace(folder)
    assert marks(folder) == WHOLE["old"]


def test_a_file_system_that_syncs_no_folders_is_taken_as_it_is(tmp_path, monkeypatch):
    sync = os.fsync

    def refuse(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(22, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    fill(str(tmp_path / "model"), "old")
    replace(str(tmp_path / "model"))
    assert marks(str(tmp_path / "model")) == WHOLE["new"]
