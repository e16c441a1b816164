"""What the model cards of trained models say; see `checkpoints.model_card`."""

import dataclasses

from keras_bert.checkpoints.hub_name import hub_repository, shown_name
from keras_bert.checkpoints.model_card import ModelCard, Score, Scores
from keras_bert.config.initialization import CORPUS
from keras_bert.task_kinds import kind_of_task
from keras_bert.tasks.classification.glue import GLUE


@dataclasses.dataclass(frozen=True)
class _KnownData:
    """A task's data set: its name for people, its name and part on the hub, and its language."""

    name: str
    dataset: str
    config: str | None
    language: str


_KNOWN = {
    **{task: _KnownData(f"GLUE, {task}", "nyu-mll/glue", task, "en") for task in GLUE},
    "squad": _KnownData("SQuAD 1.1", "rajpurkar/squad", None, "en"),
    "squad_v2": _KnownData("SQuAD 2.0", "rajpurkar/squad_v2", None, "en"),
    "cmrc": _KnownData("CMRC 2018", "hfl/cmrc2018", None, "zh"),
    "swag": _KnownData("SWAG", "allenai/swag", "regular", "en"),
}
# Of what a validation during pretraining gives, what others measure too.
_PRETRAINING = ("perplexity", "mlm_loss", "mlm_accuracy", "nsp_accuracy")

# Who reads a card has the package, not a checkout.
_PREDICT = "keras-bert predict --model . --input {} --output {}"


def pretraining_card(config, path, steps, evaluation, command=None):
    """The `ModelCard` of a pretraining run.

    Args:
        config: its `PretrainConfig`.
        path: the run's folder.
        steps: how many were done.
        evaluation: `{"eval_…": figure}` after the last.
        command: what was typed; None where that is not known.
    """
    is_documentation = config.data.source == "python_documentation"
    rows = " then ".join(f"{phase.batch_size} rows of {phase.sequence_length} tokens" for phase in config.phases)
    objectives = "masked LM and next sentence prediction" if config.objective.pair == "nsp" else "masked LM"
    text = "the documentation of the Python language" if is_documentation else "text of its maker's"
    scores = [Score(name, float(evaluation[f"eval_{name}"])) for name in _PRETRAINING if f"eval_{name}" in evaluation]
    beginning = _beginning(config.init, config.initialization.word_embeddings == CORPUS)
    count = f"at most {config.training.evaluation_examples:,} rows"
    held_out = Scores("held-out documents of the same text", None, None, "validation", count, scores)
    return ModelCard(
        shown_name(path),
        f"Pretrained on {text} by {objectives}, beginning from {beginning}: {steps:,} steps of {rows}.",
        hub_repository(config.init),
        command,
        "en" if is_documentation else None,
        [held_out] if scores else [],
        "Measured by this run after its last step, on documents that it was not trained on.",
        'keras-bert fill --model . "… [MASK] …"',
    )


def finetuning_card(config, path, results, command=None):
    """The `ModelCard` of a fine-tuning run.

    Args:
        config: its `FinetuneConfig`.
        path: the run's folder.
        results: what results.json says.
        command: what was typed; None where that is not known.
    """
    best = (
        f"Measured by this run with the weights of epoch {results['best_epoch']:g}, which did best there by "
        f"{results['main_metric']}: what was used to choose flatters a little."
    )
    return _card(config, path, results, command, best)


def seeds_card(config, path, results, command=None):
    """The `ModelCard` of the best of several runs: `results` is their `summary`."""
    seeds = ", ".join(map(str, results["seeds"]))
    how = (
        f"Medians over the seeds {seeds}, with the standard deviation. These are the weights of seed "
        f"{results['best_seed']}, the best of them by {results['main_metric']}."
    )
    return _card(config, path, results, command, how)


def _card(config, path, results, command, how):
    known = _known(config)
    init = None if config.from_scratch else config.init
    data = known or _KnownData("data of its maker's", None, None, None)
    measured = [
        Scores(data.name, data.dataset, data.config, split, _counted(config.task, results, split), scores)
        for split, figures in results["splits"].items()
        if (scores := list(_split_scores(results, split, figures)))
    ]
    return ModelCard(
        shown_name(path),
        f"Trained for the task {config.task} on {data.name}, beginning from {_beginning(init)}: "
        f"{_lasted(config, results)}.",
        hub_repository(init),
        command,
        data.language,
        measured,
        how,
        _PREDICT.format(*kind_of_task(config.task).example_files),
    )


def _beginning(init, is_counted=False):
    if init:
        return f"the weights of `{shown_name(init)}`"
    return "vectors of the text's own counts and random weights" if is_counted else "random weights"


def _known(config):
    own = config.data.train or config.data.dev or config.data.test
    return None if own else _KNOWN.get(config.task)


def _lasted(config, results):
    training = config.training
    return (
        f"{results['steps']:,} steps of {training.batch_size} rows of at most {config.input.max_length} tokens, "
        f"learning rate {config.optimizer.learning_rate:g}"
    )


def _split_scores(results, split, figures):
    baseline = results["baseline"].get(split) or {}
    spreads = (results.get("over_seeds") or {}).get(split) or {}
    for name, value in figures.items():
        if isinstance(value, (int, float)) and name in baseline and isinstance(baseline[name], (int, float)):
            spread = f" ± {spreads[name]['std']:.2g}" if name in spreads else ""
            yield Score(name, float(value), float(baseline[name]), spread)


def _counted(task, results, split):
    noun, count = kind_of_task(task).noun, results.get("counts", {}).get(split)
    return noun if count is None else f"{count:,} {noun}"
