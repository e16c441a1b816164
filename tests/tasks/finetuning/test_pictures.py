"""Pictures are drawn at the end of a run, of whatever the labels are called."""

import numpy as np
import pytest

from keras_bert.drawing import plain
from keras_bert.tasks.finetuning.pictures import confusion_picture, loss_picture, scores_picture

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", [r"$\broken{$", "a$b", "x" * 5000, "_hidden"])
def test_names_are_no_formulas_and_leave_room(name):
    """Formulas that are none ended a run in a fault when all was computed."""
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


def test_scores_are_drawn_with_and_without_a_range():
    """One seed has no range, and not every metric has a most frequent answer."""
    scores = {
        "ner\nf1": {"most frequent": [None], "ours": [60.0, 62.5, 61.0]},
        "mrpc\nf1": {"most frequent": [81.2], "ours": [80.0]},
    }
    assert scores_picture(scores, "title").startswith(b"\x89PNG")
