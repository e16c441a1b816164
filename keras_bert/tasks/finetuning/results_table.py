"""Results as people read them."""

from keras_bert.tasks.classification.glue import GLUE

_COLUMNS = (*(task for task in GLUE if task not in ("wnli", "ax", "mnli")), "mnli", "wnli")


def results_lines(results):
    """The lines of a table: one row a split and metric, beside the most frequent answer's score.

    Args:
        results: what `Finetuning.finetune` or `finetuning_runs.summary` gives.
    """
    several, scale = "over_seeds" in results, _scale(results)
    header = ["split", "metric", *(("median", "mean", "std", "best") if several else ("score",)), "majority"]
    rows = []
    for split, baseline in results["baseline"].items():
        for metric, majority in baseline.items():
            if metric not in results["splits"][split] or not isinstance(majority, (int, float)):
                continue
            if several:
                spread = results["over_seeds"][split][metric]
                values = [spread[name] for name in header[2:-1]]
            else:
                values = [results["splits"][split][metric]]
            rows.append([split, metric, *(f"{scale * value:.2f}" for value in (*values, majority))])
    return table_lines([header, *rows])


def sweep_lines(found):
    """The lines of a table of a sweep's points, as `FinetuningRuns.sweep` gives them."""
    settings = list(found[0][0])
    metric = found[0][1]["main_metric"]
    rows = [[*settings, metric]]
    for point, results in found:
        score = next(iter(results["splits"].values()))[metric]
        rows.append([*(f"{point[name]:g}" for name in settings), f"{_scale(results) * score:.2f}"])
    return table_lines(rows)


def evaluation_lines(found, problem):
    """The lines of a table of `{split: {what was done to the texts: {metric: number}}}`, in per cent."""
    metrics, scale = problem.metric_names, 1 if problem.per_cent else 100
    rows = [["split", "texts", *metrics]]
    for split, by_noise in found.items():
        for noise, figures in by_noise.items():
            rows.append([split, noise, *(f"{scale * figures[metric]:.2f}" for metric in metrics)])
    return table_lines(rows)


def glue_lines(results):
    """The lines of GLUE's table: a column a task, the main metric in per cent, with the average as in BERT's paper.

    MNLI counts as two columns, and WNLI is not in the average. Published scores are of the test server; ours of dev.

    Args:
        results: `{task: results}` of those tasks that ran.
    """
    columns = [(task, split) for task in _COLUMNS if task in results for split in results[task]["splits"]]
    header = ["", *(_heading(task, split) for task, split in columns), "average"]
    rows = {"this model (dev)": [], "majority (dev)": []}
    systems = ("BERT base", "BERT large", "human")
    rows |= {f"{system} (test)": [] for system in systems}
    for task, split in columns:
        metric = results[task]["main_metric"]
        rows["this model (dev)"].append(100 * results[task]["splits"][split][metric])
        rows["majority (dev)"].append(100 * results[task]["baseline"][split][metric])
        test = split.replace("dev", "test")
        for system in systems:
            found = [
                score.value
                for score in GLUE[task].published
                if (score.system, score.metric, score.split) == (system, metric, test)
            ]
            rows[f"{system} (test)"].append(found[0] if found else None)
    averaged = [index for index, (task, _) in enumerate(columns) if task != "wnli"]
    lines = [header]
    for name, values in rows.items():
        known = [values[index] for index in averaged]
        average = None if not known or None in known else sum(known) / len(known)
        lines.append([name, *("-" if value is None else f"{value:.1f}" for value in (*values, average))])
    return table_lines(lines)


def _scale(results):
    return 1 if results["per_cent"] else 100


def table_lines(rows):
    """Rows of strings, the header first, as aligned lines: the first column to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if _is_text(rows, column) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ]
        yield "  ".join(cells).rstrip()


def _is_text(rows, column):
    return column == 0 or any(row[column][:1].isalpha() for row in rows[1:])


def _heading(task, split):
    return {"dev_matched": f"{task}-m", "dev_mismatched": f"{task}-mm"}.get(split, task)
