"""Pictures are drawn at the end of a run, of whatever the labels are called."""

import numpy as np
import pytest

from keras_bert.tasks.pictures import confusion_picture, loss_picture

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", [r"$\broken{$", "a$b", "x" * 5000, "_hidden"])
def test_names_are_no_formulas_and_leave_room(name):
    """Formulas that are none ended a run in a fault when all was computed."""
    for png in (
        confusion_picture(np.eye(2, dtype=int), [name, "b"], name),
        loss_picture({name: [{"step": 1, "loss": 1.0}, {"step": 2, "eval_loss": 1.0}]}, name),
    ):
        assert png.startswith(b"\x89PNG")
