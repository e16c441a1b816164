"""The tasks of SuperGLUE (Wang et al. 2019) that classify pairs of texts, as data.

A label's id is its index in TFDS's `ClassLabel` names. AX-b and AX-g, the diagnostic sets, are answered by a model of
RTE; their labels are public.
"""

from typing import Any

from keras_bert.config.heads import SINGLE_LABEL
from keras_bert.tasks import superglue
from keras_bert.tasks.task import Split, Task, TfdsFields

_ENTAILMENT = ("entailment", "not_entailment")
_PREMISE = ("premise", "hypothesis")


def _task(
    name: str,
    folder: str,
    labels: tuple[str, ...],
    texts: tuple[str, str],
    metrics: tuple[str, ...] = ("accuracy",),
    tfds: str | None = None,
    **settings: Any,
) -> Task:
    settings = {"splits": superglue.splits(folder), **settings}
    return Task(
        name=name,
        kind=SINGLE_LABEL,
        texts=texts,
        label="label",
        metrics=metrics,
        labels=labels,
        folders=(folder,),
        format="jsonl",
        tfds=TfdsFields(tfds or superglue.tfds_name(name)),
        published=superglue.published(folder),
        **settings,
    )


def _diagnostic(name: str, folder: str, texts: tuple[str, str], metrics: tuple[str, ...]) -> Task:
    file = f"{folder}.jsonl"
    test = Split((file,), labelled=None, index="idx", tfds="test", submission=file)
    tfds = f"super_glue/{name}"
    return _task(name, folder, _ENTAILMENT, texts, metrics, tfds, splits={"test": test}, trained_by="superglue_rte")


BOOLQ = _task(
    "boolq", superglue.BOOLQ, ("False", "True"), ("passage", "question"), written=("false", "true")
)  # In the file, a label is true or false.
CB = _task("cb", superglue.CB, ("entailment", "contradiction", "neutral"), _PREMISE, metrics=("macro_f1", "accuracy"))
RTE = _task("superglue_rte", superglue.RTE, _ENTAILMENT, _PREMISE)
AX_B = _diagnostic("axb", superglue.AX_B, ("sentence1", "sentence2"), ("matthews",))
AX_G = _diagnostic("axg", superglue.AX_G, _PREMISE, ("gender_parity", "accuracy"))

SUPERGLUE = {task.name: task for task in (BOOLQ, CB, RTE, AX_B, AX_G)}
