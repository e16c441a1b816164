"""Pictures are drawn at the end of a run, whatever the labels are called."""

import numpy as np
import pytest
from finetuning import VOCABULARY

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core import drawing
from keras_bert.core.drawing import plain
from keras_bert.tasks.finetuning import pictures
from keras_bert.tasks.finetuning.pictures import confusion_picture, evaluation_groups, loss_picture, scores_picture
from keras_bert.tasks.finetuning.results import evaluation_lines
from keras_bert.tasks.problem import open_problem
from keras_bert.text.wordpiece import WordPieceTokenizer

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", [r"$\broken{$", "a$b", "x" * 5000, "_hidden"])
def test_names_are_no_formulas_and_leave_room(name):
    """A label that is a broken formula would end a run in an error when everything was computed."""
    for png in (
        confusion_picture(np.eye(2, dtype=int), [name, "b"], name),
        loss_picture({name: [{"step": 1, "loss": 1.0}, {"step": 2, "eval_loss": 1.0}]}, name),
    ):
        assert png.startswith(b"\x89PNG")


def test_no_name_is_left_out_of_a_legend():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    axes.plot([1, 2], label=plain("_hidden"))
    assert [text.get_text().strip() for text in axes.legend().get_texts()] == ["_hidden"]


def test_losses_that_were_not_finite_leave_the_others_in_the_picture(monkeypatch):
    """They are null in metrics.jsonl; the running mean was NaN from the first of them on."""
    monkeypatch.setattr(pictures, "png", lambda figure: figure)
    lines = [{"step": step, "loss": None if step == 2 else 1.0, "eval_loss": None} for step in range(1, 6)]
    [training] = loss_picture({"run": lines}, smoothed=2).axes[0].lines
    np.testing.assert_array_equal(training.get_xydata(), [[1, 1], [3, 1], [4, 1], [5, 1]])


def test_scores_are_drawn_with_and_without_a_range():
    """A single seed has no range, and not every metric has a score for the most frequent answer."""
    scores = {
        "ner\nf1": {"most frequent": [None], "ours": [60.0, 62.5, 61.0]},
        "mrpc\nf1": {"most frequent": [81.2], "ours": [80.0]},
    }
    assert scores_picture(scores, "title").startswith(b"\x89PNG")


def test_scores_below_0_are_in_the_picture(monkeypatch):
    """Those of a correlation may be; their bar and its number lay left of the panel."""
    monkeypatch.setattr(pictures, "png", lambda figure: figure)
    figure = scores_picture({"stsb": {"ours": [-8.0, -5.0], "BERT": [85.0]}, "sst2": {"ours": [80.0], "BERT": [90.0]}})
    assert [axes.get_xlim()[0] < -8.0 for axes in figure.axes] == [True, False]
    assert figure.axes[1].get_xlim()[0] == 0.0


def test_chinese_labels_have_a_font_for_them(monkeypatch):
    """matplotlib's own lacks the characters: it drew a box for each, whatever fonts are installed."""
    monkeypatch.setattr(drawing, "_chinese_fonts", lambda: ["serif"])
    figure = drawing.new_figure(2, 2)
    texts = [figure.text(0, 0, text) for text in ("正面", "label é", "")]
    drawing.png(figure)
    assert ["serif" in text.get_fontfamily() for text in texts] == [True, False, False]


def test_one_line_says_that_no_font_has_chinese_characters(monkeypatch, caplog, recwarn):
    """matplotlib warns in two lines of each character that it draws as a box."""
    from matplotlib import font_manager

    own = [font for font in font_manager.fontManager.ttflist if font.name.startswith("DejaVu")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    drawing._chinese_fonts.cache_clear()
    try:
        for _ in range(2):
            figure = drawing.new_figure(2, 2)
            figure.text(0, 0, "正面负面")
            drawing.png(figure)
    finally:
        drawing._chinese_fonts.cache_clear()
    assert "Noto Sans CJK" in caplog.text and len(caplog.records) == 1 and not recwarn.list


def test_the_picture_has_what_the_table_has_beside_a_split():
    """Each of MNLI's two dev sets is shown beside the published scores of its own test set."""
    config = FinetuneConfig.from_mapping({"task": "mnli", "data": {"folder": "not read"}})
    problem = open_problem(config, WordPieceTokenizer(VOCABULARY))
    found = {"dev_matched": {"as it is": {"accuracy": 0.5}}}
    lines = list(evaluation_lines(found, problem))
    assert [line.split()[-1] for line in lines] == ["accuracy", "50.00", "84.6", "86.7", "92.0"]
    [bars] = evaluation_groups(found, problem).values()
    assert [score for [score] in bars.values()] == [50.0, 84.6, 86.7, 92.0]
    assert list(bars)[1] == "BERT base (test_matched)"
    both = evaluation_groups({**found, "dev_mismatched": {"as it is": {"accuracy": 0.4}}}, problem)
    assert both["dev_matched accuracy"]["human (test_mismatched)"] == [None]
    assert both["dev_mismatched accuracy"]["human (test_mismatched)"] == [92.8]
