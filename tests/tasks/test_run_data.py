"""Text that a run reads as it is, known by its names and sizes; other data are in test_finetuning_again.py."""

import pytest

from keras_bert.errors import UserError
from keras_bert.tasks.run_data import require_same_text
from keras_bert.training.run_folder import RunFolder


def test_text_that_changed_is_refused_once_something_was_learned(tmp_path):
    """A run that goes on would read other batches, and say nothing."""
    (tmp_path / "text").mkdir()
    file = tmp_path / "text" / "a.txt"
    file.write_text("one\n")
    run, entries = RunFolder(str(tmp_path / "run")), [str(tmp_path / "text")]
    require_same_text(run, entries)
    file.write_text("one\ntwo\n")
    require_same_text(run, entries)
    run.write_results({"steps": 1})
    require_same_text(run, entries)
    file.write_text("one\n")
    with pytest.raises(UserError, match=r"holds a run on other data .\['.*a.txt', 8\], now \['.*a.txt', 4\].*--fresh"):
        require_same_text(run, entries)
    file.write_text("one\ntwo\n")
    (tmp_path / "text" / "b.txt").write_text("three\n")
    with pytest.raises(UserError, match="1 in all, now 2"):
        require_same_text(run, entries)
