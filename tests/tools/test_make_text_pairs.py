"""`finetune --task seq2seq` reads the pairs as they are written."""

import sys

from keras_bert.data.tables.tables import read_table
from tools import make_text_pairs


def test_texts_with_quotes_late_in_the_file_are_read_as_they_are(tmp_path, monkeypatch):
    """With no quote at its beginning, a table used to pass for one without quoting: its quotes were trained on."""
    plain = [f"A plain sentence without any of those marks, number {number}." for number in range(1000)]
    said = [f'He said "no" and went away, number {number}.' for number in range(20)]
    (tmp_path / "plain.txt").write_text("\n".join(plain + said))
    output = tmp_path / "pairs.tsv"
    line = ["make_text_pairs", "typos", str(tmp_path / "plain.txt"), "--noise", "typo=0.2", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", line)
    make_text_pairs.main()
    tables = [str(tmp_path / name) for name in ("pairs.tsv", "pairs-dev.tsv")]
    targets = [row.cells[1] for table in tables for row in read_table(table, ["text", "target"])]
    assert sorted(targets) == sorted(plain + said)
