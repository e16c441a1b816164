"""Vectors of texts, compared by their cosine."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from keras_bert.config.finetuning import (
    COSENT,
    COSINE,
    REGRESSION,
    TRIPLET,
    FinetuneConfig,
    ProblemType,
    TaskDataConfig,
    VectorLoss,
    VectorsConfig,
)
from keras_bert.config.inference import MEAN
from keras_bert.config.reading import own_field
from keras_bert.core.errors import UserError
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import kind_of_config
from keras_bert.models.tensor_names import own_tensor
from keras_bert.tasks.classification.benchmarks import STSB
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.head import require_no_labels
from keras_bert.tasks.kind import TaskKind
from keras_bert.tasks.shown_answers import in_pairs, shown
from keras_bert.tasks.sources import Source, data_source
from keras_bert.tasks.task import INPUT, Split, Task, with_own_files

NAME = "pairs-contrastive"
SIZES = "matryoshka"  # In config.json.
# Its answers are cosines, not scores from 0 to 5.
_STSB = dataclasses.replace(STSB, name=NAME, score_range=None, label_range=STSB.score_range)


@dataclasses.dataclass(frozen=True)
class SentenceVectorsConfig(ClassificationConfig):
    """The head of a `BertForSentenceVectors`, for which transformers has no class: the cosine of two texts."""

    architecture: ClassVar[str] = "BertForSentenceVectors"
    problem_type: ProblemType = REGRESSION

    @classmethod
    def new(cls, task: str, labels: Iterable[str] | None) -> "SentenceVectorsConfig":
        require_no_labels(task, labels)
        return cls(("score",))


def training_table(data: TaskDataConfig, loss: VectorLoss) -> tuple[Task, Source]:
    """The pairs to train on: the user's `train`, with scores if the column `label` is named; otherwise STS-B's.

    The user's columns after the second hold hard negatives. Raises `UserError` unless two or more are named.
    """
    if not data.train:
        return _stsb(data, ("train",))
    labelled: bool | None = bool(data.label)
    if labelled and (data.dev or data.test) and loss not in (COSINE, COSENT):
        labelled = None  # The column may be that of the pairs to evaluate on alone.
    split = Split((data.train,), tuple(data.columns) or None, labelled=labelled)
    return dataclasses.replace(_own(data, data.texts), splits={"train": split}), ""


def require_columns(data: TaskDataConfig, vectors: VectorsConfig) -> None:
    """Raises `UserError` unless the settings fit the columns of the tables: of `training_table`, and of the scores."""
    loss, has_negatives = vectors.loss, bool(data.train) and len(data.texts) > 2
    if vectors.score_range and not (data.train or data.dev or data.test):
        raise UserError(
            "vectors.score_range: needs a table of your own, --train or --dev. "
            f"Received: {vectors.score_range}, for STS-B's scores from 0 to 5. Leave it out."
        )
    if loss == TRIPLET and not has_negatives:
        received = f"the columns {', '.join(data.texts)}" if data.train else "STS-B's pairs, which have none"
        raise UserError(
            f"vectors.loss: triplet needs hard negatives in --train. Received: {received}. Name a third --text column."
        )
    if loss in (COSINE, COSENT):
        if data.positive != TaskDataConfig.positive:
            raise UserError(
                f"data.positive: needs a vectors.loss of pairs that mean the same. Received: {loss}, which trains on "
                "all pairs. Leave it out."
            )
        if data.train and not data.label:
            raise UserError(
                f"vectors.loss: {loss} needs a score for each pair. Received: none. Name their column: --label COLUMN."
            )
        if has_negatives:
            raise UserError(
                f"vectors.loss: {loss} needs two columns of texts. Received: {', '.join(data.texts)}. "
                "Leave out the hard negatives, which have no scores."
            )


def judging_table(data: TaskDataConfig, own: Mapping[str, str]) -> tuple[Task, Source]:
    """The scored pairs to evaluate on: the files in `own` except the training file, or else STS-B's dev set."""
    judged = {split: path for split, path in own.items() if split != "train"}
    if not judged:
        return _stsb(data, ("dev",))  # The scores of its test set are hidden.
    is_named = INPUT not in own or data.texts != TaskDataConfig().texts
    task = _own(data, data.texts[:2]) if is_named else dataclasses.replace(_STSB, format=data.format)
    return with_own_files(task, judged, tuple(data.columns) or None), ""


def _own(data: TaskDataConfig, texts: Sequence[str]) -> Task:
    """The task on the user's tables, without its splits."""
    if len(texts) < 2 or len(set(texts)) != len(texts):
        raise UserError(
            "text: needs the names of two columns, one for each text, and of one more for each hard negative. "
            f"Received: {', '.join(texts)}."
        )
    return Task(
        name=NAME,
        kind=REGRESSION,
        texts=tuple(texts),
        label=data.label or "score",
        splits={},
        metrics=STSB.metrics,
        format=data.format,
        options="--text and --label",
    )


def _stsb(data: TaskDataConfig, splits: tuple[str, ...]) -> tuple[Task, Source]:
    source = data_source(STSB.tfds.name if STSB.tfds else None, data.folder, STSB.splits.values())
    return dataclasses.replace(_STSB, splits={name: STSB.splits[name] for name in splits}), source


PART = "similarity"


class SentenceVectors(TaskKind):
    """Vectors of texts, trained on pairs that mean the same (against in-batch and hard negatives) or have scores.

    The encoder is trained; the only tensor of the head is the scale of the cosines.
    """

    head, part, tasks = SentenceVectorsConfig, PART, (NAME,)
    model = "keras_bert.tasks.sentence_vectors.network:BertForSentenceVectors"
    tensors = {PART: (own_tensor("similarity.log_scale", "similarity.log_scale"),)}
    titles = {PART: "scale of the cosines"}
    in_transformers = False
    trains_vectors = has_own_rows = True
    pipeline, library = "sentence-similarity", "sentence-transformers"
    reads, texts = ("texts", "label", "format", "columns", "positive"), 2

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.tasks.sentence_vectors.serving import sentence_vector_signatures

        return sentence_vector_signatures(text_inputs, network)

    def open_problem(
        self, config: FinetuneConfig, tokenizer: Any, head: Any, task_record: Mapping[str, Any], own: Mapping[str, str]
    ) -> Any:
        from keras_bert.tasks.sentence_vectors.problem import ContrastiveProblem

        data, default = config.data, TaskDataConfig()
        of_tables = ("texts", "label", "format", "columns")
        if head is None and not own and any(getattr(data, name) != getattr(default, name) for name in of_tables):
            raise UserError(
                "data.texts, data.label, data.format, data.columns (--text, --label, --format): need a table of your "
                f"own, --train or --dev, for {NAME}. Received: none, so that STS-B's columns are read. Leave them out."
            )
        if head is None:
            require_columns(data, config.vectors)
        judge, source = judging_table(data, own)
        problem = ContrastiveProblem(judge, source, tokenizer, config, head, task_record)
        if INPUT not in own:
            problem.train_on(*training_table(data, config.vectors.loss))
        return problem

    def folder_files(self, config: BertConfig, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        from keras_bert.checkpoints.sentence_transformers import vector_files

        if not kind_of_config(config).in_sentence_transformers:
            return {}
        own = own_field(fields)
        return vector_files(config.hidden_size, own.get("max_length") or config.max_position_embeddings)

    def library_example(self, fields: Mapping[str, Any]) -> str:
        return (
            "from sentence_transformers import SentenceTransformer\n\n"
            'model = SentenceTransformer(".")\n'
            'vectors = model.encode(["A cat sleeps.", "The cat is asleep."])\n'
            "print(model.similarity(vectors, vectors))"
        )

    def require_start(self, folder: Any) -> None:
        pooling = folder.vectors().pooling
        if pooling != MEAN:
            raise UserError(
                f"{folder.path}: needs vectors that are the mean over the tokens, which {NAME} trains. Received: the "
                f"pooling {pooling}. To train with mean pooling, use a copy of the folder without modules.json."
            )

    def card_example(self, fields: Mapping[str, Any]) -> str:
        lines = [
            'vectors = keras_bert.serving_function(bert)(["A cat sleeps.", "The cat is asleep."])["vectors"]',
            "print(vectors @ vectors.T)  # The cosines of all pairs.",
        ]
        if sizes := own_field(fields).get(SIZES):
            *most, last = map(str, sizes)
            shown = f"{', '.join(most)} or {last}" if most else last
            lines.append(f"# Trained to be shortened: the first {shown} dimensions are vectors too, once at length 1.")
        return "\n".join(lines)

    def answer(self, bert: Any, examples: Sequence[Any]) -> list[Any]:
        from keras_bert.export.serving_function import signatures_of
        from keras_bert.inference.texts import text_list
        from keras_bert.tasks.classification.in_python import text_columns

        columns = text_columns(text_list(examples, pairs=True))
        function = signatures_of(bert)
        found = [[row["vectors"] for row in function.answers_by_length(column)] for column in columns]
        return found[0] if len(found) == 1 else [float(first @ second) for first, second in zip(*found)]

    def answers_shown(self, bert: Any, texts: list[str]) -> list[str]:
        pairs = in_pairs(texts, "pairs of texts to compare")
        cosines = bert.predict(pairs)
        return [line for pair, cosine in zip(pairs, cosines) for line in shown(pair, [f"cosine {cosine:.3f}"])]


KINDS = (SentenceVectors(),)
