"""Computes and writes a fine-tuned model's answers to any number of examples, window by window."""

from collections.abc import Iterable, Sequence

from keras_bert import files
from keras_bert.tasks.answer_files import FILE, FOLDER, check_output
from keras_bert.tasks.evaluation import FinetunedModel
from keras_bert.tasks.problem import Problem
from keras_bert.terminal_bar import terminal_bar


def predict(model: FinetunedModel, splits: Iterable[str], output: str) -> tuple[list[str], int]:
    """Writes the answers to some splits, in the format of the kind of task.

    They are computed by the same function as in the exported model, with at most some thousand examples in memory.
    Files appear when they are complete; stdout is written as the answers are computed.

    Args:
        model: the model.
        splits: splits of its task.
        output: a file, "-" for stdout, or a folder if the answers have file names of their own. Several splits each
            get their own file or folder in it.

    Returns: (the paths written, how many examples, questions or sentences were answered).

    Raises:
        UserError: the output cannot be written, which is found before anything is computed; or the examples cannot be
            read to their end, or an answer is not finite, in which case no file is written.
    """
    problem, places, done = model.problem, _places(model.problem, list(splits), output), 0
    for split, place in places.items():
        with problem.writing(split, place) as write, terminal_bar("Answering", "examples", leave=False) as bar:
            for window in problem.windows(split):
                write(window, problem.window_answers(window, model.serving_function))
                done += len(window)
                bar.update(len(window))
    return list(dict.fromkeys(places.values())), done


def _places(problem: Problem, splits: Sequence[str], output: str) -> dict[str, str]:
    """`{split: where its answers are written}`. Raises `UserError` if that cannot be written."""
    kinds = {split: problem.output_kind(split) for split in splits}
    if len(splits) == 1:
        [(_, kind)] = kinds.items()
        check_output(output, kind)
        return {splits[0]: output}
    check_output(output, FOLDER)
    return {
        split: files.join(output, f"{split}{problem.answers_ending}" if kind == FILE else split)
        for split, kind in kinds.items()
    }
