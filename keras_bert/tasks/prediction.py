"""A fine-tuned model's answers to examples of any number, computed and written window by window."""

from collections.abc import Iterable

from keras_bert import files
from keras_bert.tasks.answer_files import FILE, FOLDER, check_output
from keras_bert.tasks.evaluation import FinetunedModel
from keras_bert.terminal_bar import terminal_bar


def predict(model: FinetunedModel, splits: Iterable[str], output: str) -> tuple[list[str], int]:
    """Writes the answers to some splits; each problem knows in which form.

    They are what the exported model answers, by the same function. In memory there are no more than some thousand
    examples at a time. What goes to a file is there when all is done; what goes out, "-", at once.

    Args:
        model: a `FinetunedModel`.
        splits: names of splits of its task.
        output: the file, or "-", or the folder for what has names of its own. Of several splits each has its own file,
            or folder, in it.

    Returns: (what was written, how many examples, questions or sentences).

    Raises:
        UserError: the output cannot be written, of which nothing was computed before; or examples cannot be read to
            their end, or an answer is no number: no file is written then.
    """
    problem, places, done = model.problem, _places(model.problem, list(splits), output), 0
    for split, place in places.items():
        with problem.writing(split, place) as write, terminal_bar("Answering", "examples", leave=False) as bar:
            for window in problem.windows(split):
                write(window, problem.window_answers(window, model.serving_function))
                done += len(window)
                bar.update(len(window))
    return list(dict.fromkeys(places.values())), done


def _places(problem, splits, output):
    """`{split: where its answers are written}`. Raises `UserError` where they cannot be."""
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
