"""The README.md of a model folder: a page of the Hugging Face hub, with the header that the hub reads.

https://huggingface.co/docs/hub/model-cards tells the header's fields.
"""

import dataclasses
import math
import re

import yaml

import keras_bert
from keras_bert import files
from keras_bert.config.reading import FIELD

CARD = "README.md"

# The hub's name of what a model does, by the class that config.json names.
_PIPELINES = {
    "BertForPreTraining": "fill-mask",
    "BertForMaskedLM": "fill-mask",
    "BertForSequenceClassification": "text-classification",
    "BertForTokenClassification": "token-classification",
    "BertForQuestionAnswering": "question-answering",
    "BertForMultipleChoice": "multiple-choice",
    "BertModel": "feature-extraction",
}
_TAGGER = "BertFeatureTagger"

# The hub's names of metrics, where they differ from ours.
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
    """One figure as measured.

    Attributes:
        metric: its name here.
        value: in the metric's own scale.
        baseline: what the trivial answer scores; None where that is not known.
        spread: of several seeds, in words; else "".
    """

    metric: str
    value: float
    baseline: float | None = None
    spread: str = ""


@dataclasses.dataclass(frozen=True)
class Scores:
    """Figures measured on one split of one data set.

    Attributes:
        data: the data set's name for people.
        dataset: its name on the hub; None where it has none.
        config: which part of it; None for all.
        split: the split.
        count: on how much, in words: "872 examples".
        scores: list of `Score`.
    """

    data: str
    dataset: str | None
    config: str | None
    split: str
    count: str
    scores: list


@dataclasses.dataclass(frozen=True)
class ModelCard:
    """What a page says of a model beside what its files tell.

    Attributes:
        title: the model's name.
        made: a sentence or two: what it was trained on, and how.
        base: the name on the hub of the model that it comes from; None where that is not there.
        command: what was typed; None where that is not known.
        language: the hub's code of it; None where that is not known.
        measured: list of `Scores`.
        measured_how: a sentence under the scores.
        use: a command of this program that suits it.
        in_transformers: whether `transformers` opens the folder, unless it holds a tagger over features.
    """

    title: str = "BERT"
    made: str = ""
    base: str | None = None
    command: str | None = None
    language: str | None = None
    measured: list = dataclasses.field(default_factory=list)
    measured_how: str = ""
    use: str = ""
    in_transformers: bool = True


def write_card(folder, card, config, fields, parameters, lower_case):
    """Writes README.md.

    Args:
        folder: the model folder.
        card: a `ModelCard`, or the text of a whole one.
        config: the `BertConfig`.
        fields: all that config.json says.
        parameters: how many numbers the weights are.
        lower_case: whether the tokenizer lower-cases.
    """
    text = card if isinstance(card, str) else _text(card, config, fields, parameters, lower_case)
    with files.atomic_write(files.join(folder, CARD)) as stream:
        stream.write(text)


def _text(card, config, fields, parameters, lower_case):
    architecture = _architecture(fields)
    header = yaml.safe_dump(_header(card, architecture), sort_keys=False, allow_unicode=True, width=1000)
    sections = [
        f"# {card.title}",
        f"A BERT (`{architecture}`). {card.made}".strip(),
        *_made(card),
        *_sizes(config, fields, parameters, lower_case),
        *_scores(card),
        *_use(card, architecture),
    ]
    return f"---\n{header}---\n\n" + "\n\n".join(sections) + "\n"


def _architecture(fields):
    if "features" in (fields.get(FIELD) or {}):
        return _TAGGER
    return (fields.get("architectures") or ["BertModel"])[0]


def _header(card, architecture):
    pipeline = "token-classification" if architecture == _TAGGER else _PIPELINES.get(architecture)
    datasets = sorted({scores.dataset for scores in card.measured if scores.dataset})
    header = {
        "language": card.language,
        "library_name": "transformers" if card.in_transformers and architecture != _TAGGER else None,
        "tags": ["bert", "keras-bert"],
        "base_model": card.base,
        "pipeline_tag": pipeline,
        "datasets": datasets or None,
        "metrics": list(dict.fromkeys(_hub_metric(score) for part in card.measured for score in _finite(part))) or None,
        "model-index": _index(card, pipeline),
    }
    return {key: value for key, value in header.items() if value is not None}


def _index(card, pipeline):
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


def _made(card):
    command = f"```\n{card.command}\n```" if card.command else ""
    written = f"Written by keras_bert {keras_bert.__version__}."
    return ["## How it was made", *([command] if command else []), written]


def _sizes(config, fields, parameters, lower_case):
    rows = {
        "Layers": config.num_hidden_layers,
        "Hidden size": config.hidden_size,
        "Attention heads": config.num_attention_heads,
        "Most tokens": config.max_position_embeddings,
        "Vocabulary": f"{config.vocab_size:,} pieces",
        "Parameters": f"{parameters:,}",
        "Texts": "lower-cased" if lower_case else "with their case",
    }
    labels = list((fields.get("id2label") or {}).values())
    if labels:
        shown = ", ".join(map(str, labels[:30])) + (f", … ({len(labels)} in all)" if len(labels) > 30 else "")
        rows["Labels"] = shown.replace("|", r"\|")
    return [
        "## Sizes",
        "\n".join(["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows.items())]),
    ]


def _scores(card):
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


def _use(card, architecture):
    if card.in_transformers and architecture != _TAGGER:
        yield "## Use in transformers"
        yield (
            "```python\n"
            f"from transformers import AutoTokenizer, {architecture}\n\n"
            'name = "."  # This folder, or the name of the model on the hub.\n'
            f"tokenizer, model = AutoTokenizer.from_pretrained(name), {architecture}.from_pretrained(name)\n"
            "```"
        )
    yield "## Use in keras_bert"
    command = f"\n\n```\n{card.use}\n```" if card.use else ""
    yield (
        "```python\nimport keras_bert\n\n"
        'bert = keras_bert.load(".")  # This folder, or "hf:NAME" with the name of the model on the hub.\n'
        f'vectors = bert.encode(["A text."])\n```{command}'
    )


def _finite(part):
    """The figures of a `Scores` that a header can hold."""
    return [score for score in part.scores if math.isfinite(score.value)]


def _hub_metric(score):
    return _METRICS.get(score.metric, score.metric)


def _slug(text):
    return re.sub(r"[^\w.-]+", "-", text.lower(), flags=re.ASCII).strip("-") or "own"
