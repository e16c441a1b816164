"""How long a run has gone without a better validation."""

from keras_bert.training.checkpoints import Checkpoints
from keras_bert.training.metrics_log import read_metrics


def validations_since_best(checkpoints: Checkpoints, metrics_file: str, metric: str) -> int:
    """How many validations followed the best saved one. 0 if the newest is better but not saved yet.

    Args:
        checkpoints: the run's checkpoints.
        metrics_file: the run's metrics.jsonl.
        metric: the metric that picks the best validation, higher is better.
    """
    best = checkpoints.best()
    if best is None:
        return 0
    step, score = best
    key = f"eval_{metric}"
    later = [line[key] for line in read_metrics(metrics_file) if key in line and line["step"] > step]
    is_better = later and later[-1] is not None and -later[-1] < score
    return 0 if is_better else len(later)
