"""The README.md of a model folder: a model card with the metadata header that the Hugging Face hub reads.

The header's fields: https://huggingface.co/docs/hub/model-cards
"""

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from keras_bert.core import files, whole_files
from keras_bert.core.program import VERSION
from keras_bert.models.bert.config import BOTH, DECODED, PERMUTED, REPLACED, BertConfig
from keras_bert.models.kind import bert_counterpart, kind_of_config, with_article
from keras_bert.tasks.kind import TaskKind, kind_of_fields, own_architecture, transformers_pipeline

CARD = "README.md"

_ENCODING = "feature-extraction"
# The hub's pipeline tags of models without a task's head, by the class that config.json names.
_PIPELINES = {
    "BertForPreTraining": "fill-mask",
    "BertForMaskedLM": "fill-mask",
    "BertLMHeadModel": "text-generation",
    "BertModel": _ENCODING,
}
# The method of `LoadedModel` that answers as the pipeline does, and an example.
_METHODS = {
    "fill-mask": ("fill", '"Paris is the [MASK] of France."'),
    "text-generation": ("generate", '"The city is"'),
    _ENCODING: ("encode", '"A text."'),
}

# The hub's names of metrics where they differ from ours.
_METRICS = {
    "matthews": "matthews_correlation",
    "pearson": "pearsonr",
    "spearman": "spearmanr",
    "exact": "exact_match",
    "best_exact": "exact_match",
    "best_f1": "f1",
    "tuned_exact": "exact_match",
    "tuned_f1": "f1",
    "micro_f1": "f1",
    "macro_f1": "f1",
}


@dataclasses.dataclass(frozen=True)
class Score:
    """One measured score.

    Attributes:
        metric: its name in this package.
        value: the score, on the metric's own scale.
        baseline: the score of a trivial answer; None if unknown.
        spread: the spread over several seeds, in words; else "".
    """

    metric: str
    value: float
    baseline: float | None = None
    spread: str = ""


@dataclasses.dataclass(frozen=True)
class Scores:
    """Scores on one split of one data set.

    Attributes:
        data: the display name of the data set.
        dataset: its name on the hub; None if it has none.
        config: its configuration (subset) on the hub; None for all of it.
        split: the split.
        count: its size, in words: "872 examples".
        scores: the scores.
    """

    data: str
    dataset: str | None
    config: str | None
    split: str
    count: str
    scores: list[Score]


@dataclasses.dataclass(frozen=True)
class ModelCard:
    """What a model card says that the model's files do not.

    Attributes:
        title: the model's name.
        made: a sentence or two on what it was trained on, and how.
        base: the hub's name of the model it was trained from; None if that is not on the hub.
        command: the command line that made it; None if unknown.
        language: the hub's language code; None if unknown.
        measured: the scores, by split.
        measured_how: a sentence below the scores.
        use: a command of this program that uses the model.
        in_transformers: whether `transformers` opens this format. It never opens a tagger over features.
    """

    title: str = "BERT"
    made: str = ""
    base: str | None = None
    command: str | None = None
    language: str | None = None
    measured: list[Scores] = dataclasses.field(default_factory=list)
    measured_how: str = ""
    use: str = ""
    in_transformers: bool = True


def write_card(
    folder: files.StrPath,
    card: ModelCard | str,
    config: BertConfig,
    fields: Mapping[str, Any],
    parameters: int,
    lower_case: bool,
) -> None:
    """Writes README.md into a model folder: what a card says, or the full text.

    `fields` are the content of config.json, `parameters` is the number of weights.
    """
    text = card if isinstance(card, str) else _text(card, config, fields, parameters, lower_case)
    text = text.encode(errors="backslashreplace").decode()  # A file that it names may not be named in UTF-8.
    whole_files.write_file(files.join(folder, CARD), text)


def _text(card: ModelCard, config: BertConfig, fields: Mapping[str, Any], parameters: int, lower_case: bool) -> str:
    kind, model_kind = kind_of_fields(fields), kind_of_config(config)
    berts = kind.head.architecture if kind else bert_counterpart((fields.get("architectures") or ["BertModel"])[0])
    architecture = model_kind.class_name(berts)
    opens = card.in_transformers and model_kind.in_transformers and model_kind.in_sentence_transformers
    library = kind.library if kind and opens else None
    is_half = model_kind.decodes and berts == model_kind.encoder_class
    if not model_kind.in_transformers or is_half or kind and (not kind.in_transformers or own_architecture(fields)):
        card = dataclasses.replace(card, in_transformers=False)
    # An ELMo and an XLNet have a language model's head, but fill in nothing.
    headless = _ENCODING if config.predicts in (BOTH, DECODED, PERMUTED, REPLACED) else _PIPELINES.get(berts)
    pipeline = kind.pipeline if kind else headless
    header = yaml.safe_dump(
        _header(card, pipeline, model_kind.model_type, library), sort_keys=False, allow_unicode=True, width=1000
    )
    sections = [
        f"# {card.title}",
        f"A{with_article(model_kind.title)[1:]} (`{architecture}`). {card.made}".strip(),
        *_made(card),
        *_sizes(config, fields, parameters, lower_case),
        *_scores(card),
        *_use(card, kind, pipeline, fields, library),
    ]
    return f"---\n{header}---\n\n" + "\n\n".join(sections) + "\n"


def _header(card: ModelCard, pipeline: str | None, model_type: str, library: str | None) -> dict[str, Any]:
    datasets = sorted({scores.dataset for scores in card.measured if scores.dataset})
    header = {
        "language": card.language,
        "library_name": "transformers" if card.in_transformers else library,
        "tags": [model_type, "keras-bert"],
        "base_model": card.base,
        "pipeline_tag": pipeline,
        "datasets": datasets or None,
        "metrics": list(dict.fromkeys(_hub_metric(score) for part in card.measured for score in _finite(part))) or None,
        "model-index": _index(card, pipeline),
    }
    return {key: value for key, value in header.items() if value is not None}


def _index(card: ModelCard, pipeline: str | None) -> list[dict[str, Any]] | None:
    results = [
        {
            "task": {"type": pipeline},
            "dataset": {
                "name": part.data,
                "type": part.dataset or _slug(part.data),
                **({"config": part.config} if part.config else {}),
                "split": part.split,
            },
            "metrics": [
                {"type": _hub_metric(score), "name": score.metric, "value": float(f"{score.value:.6g}")}
                for score in _finite(part)
            ],
        }
        for part in card.measured
        if _finite(part) and pipeline
    ]
    return [{"name": card.title, "results": results}] if results else None


def _made(card: ModelCard) -> list[str]:
    command = [f"```\n{card.command}\n```"] if card.command else []
    return ["## How it was made", *command, f"Written by keras_bert {VERSION}."]


def _sizes(config: BertConfig, fields: Mapping[str, Any], parameters: int, lower_case: bool) -> list[str]:
    rows = {
        "Layers": config.num_hidden_layers,
        "Hidden size": config.hidden_size,
        "Attention heads": config.num_attention_heads,
        "Maximum length": f"{config.max_position_embeddings} tokens",
        "Vocabulary": f"{config.vocab_size:,} pieces",
        "Parameters": f"{parameters:,}",
        "Casing": "uncased" if lower_case else "cased",
    }
    named = fields.get("id2label")  # Not checked in a folder without a task's head.
    if labels := list(named.values()) if isinstance(named, Mapping) else []:
        shown = ", ".join(map(str, labels[:30])) + (f", … ({len(labels)} in total)" if len(labels) > 30 else "")
        rows["Labels"] = shown.replace("|", r"\|")
    return [
        "## Sizes",
        "\n".join(["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows.items())]),
    ]


def _scores(card: ModelCard) -> Iterator[str]:
    if not card.measured:
        return
    has_baseline = any(score.baseline is not None for part in card.measured for score in part.scores)
    head = ["data", "split", "on", "metric", "score", *(["trivial answer"] if has_baseline else [])]
    lines = ["| " + " | ".join(head) + " |", "| --- | --- | --- | --- | ---: |" + (" ---: |" if has_baseline else "")]
    for part in card.measured:
        for score in part.scores:
            cells = [part.data, part.split, part.count, score.metric, f"{score.value:.4g}{score.spread}"]
            if has_baseline:
                cells.append("" if score.baseline is None else f"{score.baseline:.4g}")
            lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    yield from ("## Scores", "\n".join(lines))
    if card.measured_how:
        yield card.measured_how


def _use(
    card: ModelCard, kind: TaskKind | None, pipeline: str | None, fields: Mapping[str, Any], library: str | None
) -> Iterator[str]:
    answering = pipeline if pipeline in _METHODS else _ENCODING
    method, example = _METHODS[answering]
    # By default, generation goes on beyond the positions of most models.
    passed = f"{example}, max_new_tokens=20" if method == "generate" else example
    others: list[tuple[str, str]] = []
    if card.in_transformers:
        example_there = kind.transformers_example(fields) if kind else transformers_pipeline(answering, passed)
        others.append(("transformers", example_there))
    elif kind and library:
        others.append((library, kind.library_example(fields)))
    for name, code in others:
        yield f"## Use in {name}"
        yield f"Run it in this folder, or replace `.` with the model's name on the hub:\n\n```python\n{code}\n```"
    yield "## Use in keras_bert"
    code = kind.card_example(fields) if kind else f"print(bert.{method}([{example}]))"
    command = f"\n\n```\n{card.use}\n```" if card.use else ""
    yield (
        "```python\nimport keras_bert\n\n"
        'bert = keras_bert.load(".")  # This folder, or "hf:NAME" for the model on the hub.\n'
        f"{code}\n```{command}"
    )


def _finite(part: Scores) -> list[Score]:
    """The finite scores: a header can hold no others."""
    return [score for score in part.scores if math.isfinite(score.value)]


def _hub_metric(score: Score) -> str:
    return _METRICS.get(score.metric, score.metric)


def _slug(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text.lower(), flags=re.ASCII).strip("-") or "own"
