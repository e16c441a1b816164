"""Losses of runs in one picture."""

import json

from click.testing import CliRunner

from tools.plot_losses import main


def test_two_runs_of_one_name_are_refused(tmp_path):
    """Only the last of them was drawn, and nothing was said."""
    for run in ("one", "other"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "metrics.jsonl").write_text(json.dumps({"step": 1, "loss": 2.0}) + "\n")
    picture = tmp_path / "losses.png"
    line = [f"mini={tmp_path / 'one'}", f"mini={tmp_path / 'other'}", "--output", str(picture)]
    result = CliRunner().invoke(main, line)
    assert result.exit_code == 1 and "other: needs a name of its own" in result.output and not picture.exists()
