"""Losses of runs in one picture."""

import json

from click.testing import CliRunner

from tools.plot_losses import main


def write_figures(run):
    run.mkdir()
    (run / "metrics.jsonl").write_text(json.dumps({"step": 1, "loss": 2.0}) + "\n")


def test_the_folder_of_the_picture_is_made(tmp_path):
    write_figures(tmp_path / "one")
    picture = tmp_path / "pictures" / "losses.png"
    result = CliRunner().invoke(main, [f"mini={tmp_path / 'one'}", "--output", str(picture)])
    assert result.exit_code == 0 and picture.read_bytes().startswith(b"\x89PNG")


def test_two_runs_of_one_name_are_refused(tmp_path):
    """Only the last of them used to be drawn, without a word."""
    for run in ("one", "other"):
        write_figures(tmp_path / run)
    picture = tmp_path / "losses.png"
    line = [f"mini={tmp_path / 'one'}", f"mini={tmp_path / 'other'}", "--output", str(picture)]
    result = CliRunner().invoke(main, line)
    assert result.exit_code == 1 and "other: needs a name of its own" in result.output and not picture.exists()
