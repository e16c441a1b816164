"""A fine-tuned model's answers: to a benchmark's test set as its server takes them, or to texts of one's own."""

import contextlib
import itertools
import json
import math
import sys

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.config.classification import MULTI_LABEL, REGRESSION, ClassificationConfig
from keras_bert.data.tables import read_table
from keras_bert.data.text_lines import Unreadable, read_lines, read_standard_input
from keras_bert.errors import UserError
from keras_bert.files import atomic_write

STANDARD_STREAM = "-"
_WINDOW = 4096  # Texts that are sorted by length.


def answers_texts(path):
    """Whether the model in a folder answers whole texts, which may come in any table or line by line."""
    return isinstance(open_model_folder(path).head, ClassificationConfig)


def predict_splits(model, splits, output):
    """Writes the answers to each split as its problem writes them; returns the paths.

    Args:
        model: a `tasks.evaluation.FinetunedModel`.
        splits: names of splits of its task. Those of whole texts must have a submission file.
        output: the file, or the folder for what is several files.
    """
    paths = []
    for split in splits:
        served = model.problem.served_answers(split, model.serving_function)
        written = model.problem.write_predictions(split, served, output)
        paths += written if isinstance(written, list) else [written or output]
    return paths


def predict_texts(model, source, output):
    """Writes one JSON object a text, in their order; returns how many.

    Each has the text, under its column's name, and `label` with `probability` and the `probabilities` of all labels;
    for several labels `labels` and `probabilities`; for a number `score`.

    Args:
        model: a `tasks.evaluation.FinetunedModel`.
        source: a table with the task's columns (.csv, .tsv, .jsonl), or plain text (.txt, or "-", what comes in) with
            one text a line, or two with a tab between.
        output: a file, or "-".

    Raises:
        UserError: the source cannot be read to its end or holds nothing, with the line.
    """
    columns = model.problem.task.texts
    texts = read_texts(source, columns)
    done = 0
    with contextlib.nullcontext(sys.stdout) if output == STANDARD_STREAM else atomic_write(output) as stream:
        while window := list(itertools.islice(texts, _WINDOW)):
            for row, answer in zip(window, answers(model, [list(column) for column in zip(*window)])):
                stream.write(json.dumps({**dict(zip(columns, row)), **answer}, ensure_ascii=False) + "\n")
            done += len(window)
        if not done:
            raise UserError(f"{source}: needs one text or more. Received: none.")
        stream.flush()
    return done


def answers(model, texts):
    """What the model says of each text: a list of plain mappings, as `predict_texts` writes them.

    It is what the exported model answers, by the same function.

    Args:
        model: a `tasks.evaluation.FinetunedModel`.
        texts: one or two lists of n str.
    """
    head = model.problem.head
    lowest, highest = model.problem.task.score_range or (-math.inf, math.inf)
    for row in model.serving_function.answers_by_length(*texts):
        if head.problem_type == REGRESSION:
            yield {"score": min(max(float(row["score"]), lowest), highest)}
            continue
        shares = dict(zip(head.labels, row["probabilities"].tolist()))
        if head.problem_type == MULTI_LABEL:
            yield {"labels": [label for label, share in shares.items() if share > 0.5], "probabilities": shares}
        else:
            label = row["label"].decode("utf-8")
            yield {"label": label, "probability": shares[label], "probabilities": shares}


def read_texts(source, columns):
    """Iterates over tuples of one or two texts. Raises `UserError`."""
    if source != STANDARD_STREAM and not str(source).lower().endswith(".txt"):
        for row in read_table(source, columns):
            yield tuple(_text(cell, source, row.line) for cell in row.cells)
        return
    lines = read_standard_input() if source == STANDARD_STREAM else read_lines(source)
    name = "What comes in" if source == STANDARD_STREAM else source
    number = 0
    try:
        for number, line in enumerate(lines, start=1):
            texts = (line,) if len(columns) == 1 else tuple(line.split("\t"))
            if len(texts) != len(columns):
                raise UserError(f"{name} line {number}: needs two texts with a tab between. Received: {len(texts)}.")
            yield texts
    except Unreadable as reason:
        raise UserError(f"{name} line {reason.line or number + 1}: {reason}. Give UTF-8 text.") from None


def _text(cell, source, line):
    if not isinstance(cell, str):
        raise UserError(f"{source} line {line}: needs text. Received: {cell!r}.")
    return cell
