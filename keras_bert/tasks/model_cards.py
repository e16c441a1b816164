"""The contents of trained models' cards; see `checkpoints.model_card`."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from keras_bert.checkpoints.hub import hub_repository, shown_name
from keras_bert.checkpoints.model_card import ModelCard, Score, Scores
from keras_bert.config.finetuning import DOCUMENT, FinetuneConfig
from keras_bert.config.initialization import CORPUS
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.teacher import TeacherConfig
from keras_bert.models.bert.config import BOTH, DECODED, MASKED, NEXT, PERMUTED, REPLACED
from keras_bert.tasks import superglue
from keras_bert.tasks.classification.benchmarks import GLUE
from keras_bert.tasks.kind import TaskKind, kind_of_task
from keras_bert.training.run_folder import RunFolder


@dataclasses.dataclass(frozen=True)
class _KnownData:
    """A task's data set: its name in prose, its name and configuration on the hub, and its language."""

    name: str
    dataset: str | None
    config: str | None
    language: str | None


_KNOWN = {
    **{task: _KnownData(f"GLUE, {task}", "nyu-mll/glue", task, "en") for task in GLUE},
    **{
        task: _KnownData(f"SuperGLUE, {folder}", "aps/super_glue", config, "en")
        for task, (folder, config, _) in superglue.TASKS.items()
    },
    "pairs-contrastive": _KnownData("GLUE, stsb", "nyu-mll/glue", "stsb", "en"),
    "xnli": _KnownData("XNLI", "facebook/xnli", None, None),
    "squad": _KnownData("SQuAD 1.1", "rajpurkar/squad", None, "en"),
    "squad_v2": _KnownData("SQuAD 2.0", "rajpurkar/squad_v2", None, "en"),
    "cmrc": _KnownData("CMRC 2018", "hfl/cmrc2018", None, "zh"),
    "swag": _KnownData("SWAG", "allenai/swag", "regular", "en"),
}
_OWN_DATA = _KnownData("the author's own data", None, None, None)

# The command that uses a model without further ado, by what it predicts.
_USES = {
    MASKED: 'keras-bert fill --model . "… [MASK] …"',
    NEXT: 'keras-bert generate --model . "…"',
    DECODED: "keras-bert inspect .",
    BOTH: "keras-bert finetune --task ner --features weighted_all --init . --data-dir conll2003",
    **dict.fromkeys((PERMUTED, REPLACED), "keras-bert finetune --task sst2 --init . --data-dir glue"),
}

# Readers of a card have the package, not a checkout.
_PREDICT = "keras-bert predict --model . --input {} --output {}"


def pretraining_card(
    config: PretrainConfig, path: str, steps: int, evaluation: Mapping[str, float], command: str | None = None
) -> ModelCard:
    """The model card of a pretraining run.

    Args:
        steps: the steps done.
        evaluation: the last validation's figures, `eval_…`.
        command: the command line; None if unknown.
    """
    is_documentation = config.data.source == "python_documentation"
    rows = " then ".join(f"{phase.batch_size} rows of {phase.sequence_length} tokens" for phase in config.phases)
    terms = config.objective.trained
    objectives = " and ".join(term.sentence for term in terms)
    figures = ["perplexity", *(f"{term.name}_{metric}" for term in terms for metric in term.card_metrics)]
    text = "the documentation of the Python language" if is_documentation else "the author's own text"
    scores = [Score(name, float(evaluation[f"eval_{name}"])) for name in figures if f"eval_{name}" in evaluation]
    start = _start(config.init, config.initialization.word_embeddings == CORPUS) + _with(config.teacher)
    count = f"at most {config.training.evaluation_examples:,} rows"
    held_out = Scores("held-out documents of the same text", None, None, "validation", count, scores)
    return ModelCard(
        shown_name(path),
        f"Pretrained on {text} by {objectives}, starting from {start}: {steps:,} steps of {rows}.",
        hub_repository(config.init),
        command,
        "en" if is_documentation else None,
        [held_out] if scores else [],
        "Measured by this run after its last step, on documents that it was not trained on.",
        _USES[config.model.predicts],
    )


def finetuning_card(
    config: FinetuneConfig, path: str, results: Mapping[str, Any], command: str | None = None
) -> ModelCard:
    """The model card of a fine-tuning run, or of the best of several seeds.

    Args:
        results: the content of results.json; of several seeds their `summary`.
        command: the command line; None if unknown.
    """
    if "seeds" in results:
        how = (
            f"Medians over the seeds {', '.join(map(str, results['seeds']))}, with the standard deviation. These are "
            f"the weights of seed {results['best_seed']}, the best of them by {results['main_metric']}."
        )
    else:
        how = (
            f"Measured by this run with the weights of epoch {results['best_epoch']:g}, which were chosen by "
            f"{results['main_metric']} on the same split; this raises the scores slightly."
        )
    kind, init = kind_of_task(config.task), _origin(config)
    own, known = config.data, _KNOWN.get(config.task, _OWN_DATA)
    # Vectors may be trained on one's own pairs and judged by STS-B's, or the reverse.
    files = (own.train, own.dev) if kind.trains_vectors else (own.train or own.dev or own.test,) * 2
    data, judged = (_OWN_DATA if path else known for path in files)
    measured = [
        Scores(judged.name, judged.dataset, judged.config, split, _counted(kind, results, split), scores)
        for split, figures in results["splits"].items()
        if (scores := list(_split_scores(results, split, figures)))
    ]
    return ModelCard(
        shown_name(path),
        f"Trained for the task {config.task} on {data.name}, starting from {_start(init)}{_prepared(config)}"
        f"{_with(config.teacher)}: {_length(config, results)}.",
        hub_repository(init),
        command,
        data.language,
        measured,
        how,
        _PREDICT.format(*kind.example_files),
    )


def _start(init: str | None, is_counted: bool = False) -> str:
    if init:
        return f"the weights of `{shown_name(init)}`"
    return "word vectors counted in that text and random weights" if is_counted else "random weights"


def _origin(config: FinetuneConfig) -> str | None:
    """The model from before any preparatory training; None for random weights."""
    init = None if config.from_scratch else config.init
    for is_prepared in (config.prepare.kind, config.training.pretrain_minutes):  # The last stage first.
        if init and is_prepared:
            init = (RunFolder(init).begun_settings() or {}).get("init", init)
    return init


def _prepared(config: FinetuneConfig) -> str:
    """The preparatory training, in words; "" if there was none."""
    minutes, kind = config.training.pretrain_minutes, config.prepare.kind
    first = [f"{minutes:g} minutes of pretraining on the task's texts"] * bool(minutes)
    first += ["matching the words of pairs of texts (prepare.kind pairs)"] * bool(kind)
    return f" after {' and '.join(first)}" if first else ""


def _with(teacher: TeacherConfig) -> str:
    """The teacher, in words; "" if there was none."""
    return f", with `{shown_name(teacher.model)}` as its teacher" if teacher.model and teacher.weight else ""


def _length(config: FinetuneConfig, results: Mapping[str, Any]) -> str:
    rate, of_documents = config.optimizer.learning_rate, " of whole documents" * (config.data.rows == DOCUMENT)
    return (
        f"{results['steps']:,} steps of {config.training.batch_size} rows of at most {config.input.max_length} tokens"
        f"{of_documents}, " + (f"learning rate {rate:g}" if rate else "the default learning rate")
    )


def _split_scores(results: Mapping[str, Any], split: str, figures: Mapping[str, Any]) -> Iterator[Score]:
    baseline = results["baseline"].get(split) or {}
    spreads = (results.get("over_seeds") or {}).get(split) or {}
    for name, value in figures.items():
        if isinstance(value, (int, float)) and name in baseline and isinstance(baseline[name], (int, float)):
            spread = f" ± {spreads[name]['std']:.2g}" if name in spreads else ""
            yield Score(name, float(value), float(baseline[name]), spread)


def _counted(kind: TaskKind, results: Mapping[str, Any], split: str) -> str:
    count = results.get("counts", {}).get(split)
    return kind.noun if count is None else f"{count:,} {kind.noun}"
