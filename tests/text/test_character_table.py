import os
import unicodedata

import numpy as np
import pytest
from shortened import shortened

from keras_bert.text import characters
from tools import make_character_table


@pytest.mark.skipif(
    unicodedata.unidata_version != characters.recorded_unicode_version(), reason="made by another Unicode version"
)
@pytest.mark.parametrize("settings", shortened(sorted(characters.SETTINGS, reverse=True)))
def test_the_shipped_table_is_what_the_code_builds(settings):
    """Otherwise someone has changed the rules without rewriting the file."""
    shipped, built = (characters.load_character_table(*settings), make_character_table.build_character_table(*settings))
    for name, array in vars(built).items():
        np.testing.assert_array_equal(getattr(shipped, name), array)
        assert getattr(shipped, name).dtype == array.dtype


def test_the_file_is_small():
    assert os.path.getsize(characters.FILE) < 150_000


def test_written_twice_the_bytes_are_the_same(tmp_path, monkeypatch):
    """A date in the archive would make every rebuild a change."""
    small = characters.CharacterTable(*(np.arange(3, dtype=np.int32) for _ in range(4)))
    monkeypatch.setattr(make_character_table, "build_character_table", lambda *settings: small)
    monkeypatch.setattr(characters, "FILE", str(tmp_path / "table.npz"))
    contents = []
    for clock in (10**9, 1.5 * 10**9):
        monkeypatch.setattr("time.time", lambda clock=clock: clock)
        make_character_table.save_character_tables(characters.FILE)
        with open(characters.FILE, "rb") as stream:
            contents.append(stream.read())
    assert contents[0] == contents[1]
    np.testing.assert_array_equal(characters.load_character_table(True).pages, small.pages)
