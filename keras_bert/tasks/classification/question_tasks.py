"""The tasks whose questions have candidates that are judged one by one, as data: SuperGLUE's MultiRC and ReCoRD."""

from dataclasses import dataclass

from keras_bert.config.heads import SINGLE_LABEL
from keras_bert.tasks import superglue
from keras_bert.tasks.task import Task, TfdsFields


@dataclass(frozen=True)
class QuestionTask(Task):
    """A task of pairs, of a passage and a question with a candidate, that is scored by question.

    Attributes:
        is_cloze: whether one candidate has to be chosen, to fill a gap in a query; if not, any number may be right.
    """

    is_cloze: bool = False

    @property
    def known_metrics(self) -> tuple[str, ...]:
        return ("f1", "exact") if self.is_cloze else ("f1a", "exact")


def _task(name: str, folder: str, metrics: tuple[str, ...], is_cloze: bool) -> QuestionTask:
    return QuestionTask(
        name=name,
        kind=SINGLE_LABEL,
        texts=("passage", "question"),
        label="label",
        splits=superglue.splits(folder),
        metrics=metrics,
        labels=("False", "True"),
        folders=(folder,),
        tfds=TfdsFields(superglue.tfds_name(name)),
        published=superglue.published(folder),
        is_cloze=is_cloze,
    )


MULTIRC = _task("multirc", superglue.MULTIRC, ("f1a", "exact"), is_cloze=False)
RECORD = _task("record", superglue.RECORD, ("f1", "exact"), is_cloze=True)
QUESTION_TASKS = {task.name: task for task in (MULTIRC, RECORD)}
