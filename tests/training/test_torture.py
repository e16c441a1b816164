"""Real processes killed and started again give the numbers of one left alone: tools/torture.py in short."""

import pytest

from tools.torture import SAVE, torture


@pytest.mark.slow
def test_three_kills_change_nothing(tmp_path):
    """One of them during a save, one in training and one behind the last step."""
    hits, restarts, rows = torture(str(tmp_path), kills=3, steps=36, seed=1)
    assert sum(hits.values()) == restarts == 3 and hits[SAVE] >= 1
    for what, number, different in rows:
        assert number > 0 and not different, what
