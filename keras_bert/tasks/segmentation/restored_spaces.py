"""Restores lost blanks in texts, by a model that was trained to find words."""

from collections.abc import Sequence

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.config.heads import SegmentationConfig
from keras_bert.errors import UserError
from keras_bert.export.serving_function import serving_function
from keras_bert.inference.loading import load_folder
from keras_bert.program import PROGRAM
from keras_bert.tasks.problem import Problem


class SpaceRestorer:
    """Function (texts) -> the same texts with a blank between the words that a model finds; blanks in them stay.

    Args:
        model: a model fine-tuned on the task `segment`: a run folder, a model folder, or hf:NAME.

    Raises:
        UserError: there is no such model, or it was trained on something else.
    """

    def __init__(self, model: str):
        folder = open_model_folder(model)
        if not isinstance(folder.head, SegmentationConfig):
            raise UserError(
                f"--restore-spaces: needs a model that finds words. Received: {model}. "
                f"Train one with: {PROGRAM} finetune --task segment"
            )
        self._function = serving_function(load_folder(folder))

    def __call__(self, texts: Sequence[str]) -> list[str]:
        return [row["segmented"].decode("utf-8") for row in self._function.answers_by_length(texts)]


def set_restored_spaces(problem: Problem, model: str | None) -> None:
    """Makes a problem restore blanks by a model, unless that is None; see `SpaceRestorer`.

    Raises:
        UserError: the model finds no words, or the task does not classify texts.
    """
    if model is None:
        return
    if not problem.takes_restored_spaces:
        raise UserError(f"--restore-spaces: needs a task that classifies texts. Received: {problem.task.name}.")
    problem.restore_spaces = SpaceRestorer(model)
