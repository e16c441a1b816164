"""The pictures of the documents, from the tables there."""

import glob
import os
import re

import pytest
from click.testing import CliRunner
from pages import ROOT, text_of

from tools import draw_pictures

PAGES = ("README.md", *(f"docs/{os.path.basename(path)}" for path in glob.glob(os.path.join(ROOT, "docs", "*.md"))))
MOST_BYTES = 150_000


def test_tables_are_drawn_from_the_pages(tmp_path, monkeypatch):
    """Otherwise a table that is renamed or reordered would leave its picture behind."""
    monkeypatch.setattr(draw_pictures, "PICTURES", str(tmp_path))
    result = CliRunner().invoke(draw_pictures.main, ["tables"])
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir(tmp_path)) == [
        f"{n}.png" for n in ("ablation", "five_minutes", "parts_of_speech", "probes", "speeds", "wiki_mini")
    ]


def test_a_recording_has_every_line_as_it_was_printed(tmp_path, monkeypatch):
    monkeypatch.setattr(draw_pictures, "PICTURES", str(tmp_path))
    (tmp_path / "printed.txt").write_text("  a < b & c\n    → d\n", "utf-8")
    CliRunner().invoke(draw_pictures.main, ["terminal", "run.py", str(tmp_path / "printed.txt")])
    drawn = (tmp_path / "demo.svg").read_text("utf-8")
    assert re.findall(">([^<]+)</text>", drawn) == ["$ run.py", "  a &lt; b &amp; c", "    → d"]


@pytest.mark.parametrize("page", PAGES)
def test_every_picture_of_a_page_is_there_and_small(page):
    """A reader on a slow line waits for all of them."""
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text_of(page)):
        assert os.path.getsize(os.path.join(ROOT, os.path.dirname(page), path)) <= MOST_BYTES, path


def test_every_picture_is_shown():
    shown = " ".join(map(text_of, PAGES))
    for path in os.listdir(os.path.join(ROOT, "docs", "pictures")):
        assert f"pictures/{path})" in shown, path
