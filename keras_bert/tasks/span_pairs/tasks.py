"""The tasks about two spans of text, as data: SuperGLUE's WiC and WSC."""

from dataclasses import dataclass

from keras_bert.config.heads import SINGLE_LABEL
from keras_bert.tasks import superglue
from keras_bert.tasks.task import Task, TfdsFields


@dataclass(frozen=True)
class SpanPairTask(Task):
    """A classification of two spans: of one text, or one of each text of a pair.

    Attributes:
        reads_cls: whether the head sees the pooled [CLS] besides the spans.
    """

    reads_cls: bool = True


# Both as the paper's section 4.1 has them: WiC's classifier sees [CLS] and the marked word, WSC's only the spans.
WIC = SpanPairTask(
    name="wic",
    kind=SINGLE_LABEL,
    texts=("sentence1", "sentence2"),
    label="label",
    splits=superglue.splits(superglue.WIC),
    metrics=("accuracy",),
    labels=("False", "True"),
    written=("false", "true"),
    also_written={"False": "false", "True": "true"},  # As TFDS spells them.
    folders=(superglue.WIC,),
    tfds=TfdsFields(superglue.tfds_name("wic")),
    published=superglue.published(superglue.WIC),
)
WSC = SpanPairTask(
    name="wsc",
    kind=SINGLE_LABEL,
    texts=("text",),
    label="label",
    splits=superglue.splits(superglue.WSC),
    metrics=("accuracy",),
    labels=("False", "True"),  # The server wants capitals; in the file, a label is true or false.
    also_written={"false": "False", "true": "True"},
    folders=(superglue.WSC,),
    tfds=TfdsFields(superglue.tfds_name("wsc")),
    published=superglue.published(superglue.WSC),
    reads_cls=False,
)
SPAN_PAIRS = {task.name: task for task in (WIC, WSC)}
