"""The classifications and regressions of GLUE, SuperGLUE and XNLI, as data.

A label's id is its index in TFDS's `ClassLabel` names.
"""

from typing import Any

from keras_bert.config.finetuning import REGRESSION, SINGLE_LABEL, ProblemType
from keras_bert.core.errors import UserError
from keras_bert.tasks import superglue
from keras_bert.tasks.task import PublishedScore, Split, Task, TfdsFields

_ENTAILMENT = ("entailment", "not_entailment")
_NLI = ("entailment", "neutral", "contradiction")
_SENTENCES = ("sentence1", "sentence2")
_PREMISE = ("premise", "hypothesis")


# GLUE (Wang et al. 2018). Published scores are from the test server: BERT base and large from the BERT paper, table 1
# (F1 for MRPC and QQP, Spearman for STS-B); humans from Nangia and Bowman 2019, table 2.


def _glue(
    name: str,
    folder: str,
    labels: tuple[str, ...] | None,
    texts: tuple[str, ...],
    metrics: tuple[str, ...] = ("accuracy",),
    kind: ProblemType = SINGLE_LABEL,
    tfds: tuple[str, ...] | None = None,
    **settings: Any,
) -> Task:
    settings = {"label": "label", "splits": _glue_splits(folder), **settings}
    return Task(
        name=name,
        kind=kind,
        texts=texts,
        metrics=metrics,
        labels=labels,
        folders=(folder,),
        format="raw_tsv",
        tfds=TfdsFields(f"glue/{name}", texts=tfds),
        **settings,
    )


def _glue_splits(folder: str, columns: tuple[str, ...] | None = None, index: str = "index") -> dict[str, Split]:
    return {
        "train": Split(("train.tsv",), columns, tfds="train"),
        "dev": Split(("dev.tsv",), columns, tfds="validation"),
        "test": _glue_test(f"{folder}.tsv", index=index),
    }


def _glue_test(submission: str, name: str = "test", index: str = "index") -> Split:
    return Split((f"{name}.tsv",), labelled=False, index=index, tfds=name, submission=submission)


def _glue_published(
    metric: str, base: float | None, large: float | None, human: float, split: str = "test"
) -> tuple[PublishedScore, ...]:
    scores = {"BERT base": base, "BERT large": large, "human": human}
    return tuple(PublishedScore(system, metric, value, split) for system, value in scores.items() if value is not None)


COLA = _glue(
    "cola",
    "CoLA",
    ("unacceptable", "acceptable"),
    ("sentence",),
    metrics=("matthews",),
    written=("0", "1"),
    # The training and dev files have no header; the third column is the label as its source marked it.
    splits=_glue_splits("CoLA", columns=("source", "label", "marks", "sentence")),
    published=_glue_published("matthews", 52.1, 60.5, 66.4),
)
SST2 = _glue(
    "sst2",
    "SST-2",
    ("negative", "positive"),
    ("sentence",),
    written=("0", "1"),
    published=_glue_published("accuracy", 93.5, 94.9, 97.8),
)
MRPC = _glue(
    "mrpc",
    "MRPC",
    ("not_equivalent", "equivalent"),
    ("#1 String", "#2 String"),
    metrics=("f1", "accuracy"),
    label="Quality",
    written=("0", "1"),
    tfds=_SENTENCES,
    published=(*_glue_published("f1", 88.9, 89.3, 86.3), PublishedScore("human", "accuracy", 80.8)),
)
STSB = _glue(
    "stsb",
    "STS-B",
    None,
    _SENTENCES,
    metrics=("spearman", "pearson"),
    kind=REGRESSION,
    label="score",
    score_range=(0.0, 5.0),
    published=(*_glue_published("spearman", 85.8, 86.5, 92.6), PublishedScore("human", "pearson", 92.7)),
)
QQP = _glue(
    "qqp",
    "QQP",
    ("not_duplicate", "duplicate"),
    ("question1", "question2"),
    metrics=("f1", "accuracy"),
    label="is_duplicate",
    written=("0", "1"),
    splits=_glue_splits("QQP", index="id"),
    skip_ragged=True,  # In the first release of the files, some questions contain line breaks.
    published=(*_glue_published("f1", 71.2, 72.1, 59.5), PublishedScore("human", "accuracy", 80.4)),
)
MNLI = _glue(
    "mnli",
    "MNLI",
    _NLI,
    _SENTENCES,
    label="gold_label",
    tfds=_PREMISE,
    splits={
        "train": Split(("train.tsv",), tfds="train"),
        "dev_matched": Split(("dev_matched.tsv",), tfds="validation_matched"),
        "dev_mismatched": Split(("dev_mismatched.tsv",), tfds="validation_mismatched"),
        "test_matched": _glue_test("MNLI-m.tsv", "test_matched"),
        "test_mismatched": _glue_test("MNLI-mm.tsv", "test_mismatched"),
    },
    published=(
        *_glue_published("accuracy", 84.6, 86.7, 92.0, "test_matched"),
        *_glue_published("accuracy", 83.4, 85.9, 92.8, "test_mismatched"),
    ),
)
QNLI = _glue(
    "qnli", "QNLI", _ENTAILMENT, ("question", "sentence"), published=_glue_published("accuracy", 90.5, 92.7, 91.2)
)
RTE = _glue("rte", "RTE", _ENTAILMENT, _SENTENCES, published=_glue_published("accuracy", 66.4, 70.1, 93.6))
WNLI = _glue(
    "wnli",
    "WNLI",
    ("not_entailment", "entailment"),
    _SENTENCES,
    written=("0", "1"),
    published=_glue_published("accuracy", None, None, 95.9),  # The paper leaves it out.
)
AX = Task(
    name="ax",
    kind=SINGLE_LABEL,
    texts=_SENTENCES,
    label=None,
    splits={
        "test": Split(("diagnostic.tsv", "AX.tsv"), labelled=False, index="index", tfds="test", submission="AX.tsv")
    },
    metrics=("matthews",),
    labels=_NLI,
    folders=("diagnostic", "AX"),
    format="raw_tsv",
    tfds=TfdsFields("glue/ax", texts=_PREMISE),
    trained_by="mnli",
)

GLUE = {task.name: task for task in (COLA, SST2, MRPC, STSB, QQP, MNLI, QNLI, RTE, WNLI, AX)}


# SuperGLUE's classifications of pairs of texts (Wang et al. 2019). AX-b and AX-g, the diagnostic sets, are answered by
# a model of RTE; their labels are public.


def _superglue(name: str, texts: tuple[str, str], **fields: Any) -> Task:
    return superglue.new_task(Task, name, texts=texts, format="jsonl", **fields)


def _diagnostic(name: str, texts: tuple[str, str]) -> Task:
    file = f"{superglue.DIAGNOSTICS[name].folder}.jsonl"
    test = Split((file,), labelled=None, index="idx", tfds="test", submission=file)
    return _superglue(name, texts, labels=_ENTAILMENT, splits={"test": test}, trained_by="superglue_rte")


SUPERGLUE = {
    task.name: task
    for task in (
        # In the file, a label is true or false.
        _superglue("boolq", ("passage", "question"), written=("false", "true")),
        _superglue("cb", _PREMISE, labels=("entailment", "contradiction", "neutral")),
        _superglue("superglue_rte", _PREMISE, labels=_ENTAILMENT),
        _diagnostic("axb", _SENTENCES),
        _diagnostic("axg", _PREMISE),
    )
}


# XNLI (Conneau et al. 2018): entailment in fifteen languages. The files are XNLI's own: multinli.train.LANGUAGE.tsv of
# XNLI-MT-1.0, and xnli.dev.tsv and xnli.test.tsv of XNLI-1.0.

LANGUAGES = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")
_XNLI_FOLDERS = ("XNLI-1.0", "XNLI", "XNLI-MT-1.0/multinli", "multinli")

# Accuracies of Google's multilingual BERT base on the test set, from its repository (multilingual.md).
_XNLI_PUBLISHED = {
    "BERT base, translate-train, cased": (81.9, 76.6, 77.8, 75.9, 70.7, 61.6),
    "BERT base, zero-shot, uncased": (81.4, 63.8, 74.3, 70.5, 62.1, 58.3),
}
_XNLI_PUBLISHED_LANGUAGES = ("en", "zh", "es", "de", "ar", "ur")


def xnli_task(language: str) -> Task:
    """The XNLI task with training data in one language, whose dev set is the main one.

    English is MultiNLI itself, for zero-shot transfer; the others are machine translations of it (translate-train).
    The dev and test sets, translated by people, have a split for each language.

    Raises:
        UserError: XNLI does not have the language.
    """
    if language not in LANGUAGES:
        raise UserError(f"data.language: needs one of {', '.join(LANGUAGES)}. Received: {language!r}.")
    # The training file uses other column names and one other label.
    renamed = {"sentence1": "premise", "sentence2": "hypo", "gold_label": "label"}
    splits = {"train": Split((f"multinli.train.{language}.tsv",), renamed=renamed)}
    for split in ("dev", "test"):
        for name in (language, *(other for other in LANGUAGES if other != language)):
            splits[f"{split}_{name}"] = Split((f"xnli.{split}.tsv",), where=("language", name))
    return Task(
        name="xnli",
        kind=SINGLE_LABEL,
        texts=_SENTENCES,
        label="gold_label",
        splits=splits,
        metrics=("accuracy",),
        labels=_NLI,
        also_written={"contradictory": "contradiction"},
        folders=_XNLI_FOLDERS,
        format="raw_tsv",
        published=tuple(
            PublishedScore(system, "accuracy", value, f"test_{name}")
            for system, values in _XNLI_PUBLISHED.items()
            for name, value in zip(_XNLI_PUBLISHED_LANGUAGES, values)
        ),
    )
