"""Classification, with one label or several, and regression."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, FinetuneConfig
from keras_bert.config.reading import FIELD, WINDOWS, own_field
from keras_bert.models.tensor_names import NEXT_SENTENCE_HEAD, TensorName
from keras_bert.tasks.classification.benchmarks import GLUE, SUPERGLUE
from keras_bert.tasks.classification.head import (
    CLASSIFIER,
    CLASSIFIER_TENSORS,
    CLASSIFIER_TITLES,
    ClassificationConfig,
    NextSentenceConfig,
)
from keras_bert.tasks.classification.questions import QUESTION_TASKS, QuestionTask
from keras_bert.tasks.head import require_no_labels
from keras_bert.tasks.kind import TaskKind, transformers_pipeline
from keras_bert.tasks.shown_answers import in_pairs, ranked, shown

TEXT = "text"  # The user's own table.
RERANK = "rerank"  # The user's own table of queries and passages.
XNLI = "xnli"
_EXAMPLES = '"A warm and funny film."', '"A comedy."'
_BENCHMARKS = {**GLUE, **SUPERGLUE, **QUESTION_TASKS}


class Classification(TaskKind):
    """A label, several labels or a number for a text or a pair of texts."""

    head: ClassVar[type[Any]] = ClassificationConfig
    model: ClassVar[str] = "keras_bert.tasks.classification.network:BertForSequenceClassification"
    part: ClassVar[str] = CLASSIFIER
    tensors: ClassVar[Mapping[str, tuple[TensorName, ...]]] = CLASSIFIER_TENSORS
    titles: ClassVar[Mapping[str, str]] = CLASSIFIER_TITLES
    tasks: ClassVar[tuple[str, ...]] = (*_BENCHMARKS, XNLI, TEXT, RERANK)
    own_task: ClassVar[str | None] = TEXT
    pools = in_google = takes_bilstm = weighs_classes = takes_teacher = True
    strides = (WINDOWS,)
    reads: ClassVar[tuple[str, ...] | None] = ()
    pipeline = "text-classification"

    def model_arguments(self, head: ClassificationConfig) -> dict[str, Any]:
        return {**super().model_arguments(head), "num_labels": head.num_labels}

    def new_head(self, task: str, labels: Iterable[str] | None) -> ClassificationConfig:
        if task != RERANK and (task not in _BENCHMARKS or _BENCHMARKS[task].kind != REGRESSION):
            return super().new_head(task, labels)
        require_no_labels(task, labels)
        return ClassificationConfig(("score",), REGRESSION, logistic=task == RERANK)

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.tasks.classification.serving import classification_signatures

        return classification_signatures(bert.head, text_inputs, network, lambda inputs: self.logits(network, inputs))

    def logits(self, network: Any, inputs: Mapping[str, Any]) -> Any:
        """[batch, labels] float32 in a `Network`'s graph, from the encoder's inputs [batch, seq]."""
        pooled = network.pooled(inputs)
        return network.run(lambda model: model.classifier(pooled))

    def open_problem(
        self, config: FinetuneConfig, tokenizer: Any, head: Any, task_record: Mapping[str, Any], own: Mapping[str, str]
    ) -> Any:
        from keras_bert.tasks.classification.benchmarks import xnli_task
        from keras_bert.tasks.classification.data import own_table, require_columns
        from keras_bert.tasks.classification.problem import SequenceProblem
        from keras_bert.tasks.classification.question_problem import QuestionProblem
        from keras_bert.tasks.classification.reranking import RerankProblem, RerankTask, rerank_table
        from keras_bert.tasks.sources import Source, data_source
        from keras_bert.tasks.task import INPUT, with_own_files

        source: Source = ""
        if config.task in (TEXT, RERANK):
            task = (rerank_table if config.task == RERANK else own_table)(config.data, head)
            if INPUT in own:
                task = with_own_files(task, own, tuple(config.data.columns) or None)
        else:
            task = xnli_task(config.data.language) if config.task == XNLI else _BENCHMARKS[config.task]
            if own:
                task = dataclasses.replace(with_own_files(task, own), format=None)
            else:
                source = data_source(task.tfds.name if task.tfds else None, config.data.folder, task.splits.values())
        require_columns(task, task_record)
        problems: dict[type[Any], type[Any]] = {QuestionTask: QuestionProblem, RerankTask: RerankProblem}
        problem = problems.get(type(task), SequenceProblem)
        return problem(task, source, tokenizer, config, head, task_record)

    def data_fields(self, task: str) -> Collection[str] | None:
        of_tables = ("texts", "label", "format", "columns", "dev_share")
        return {TEXT: (*of_tables, "kind", "separator"), RERANK: of_tables, XNLI: ("language",)}.get(task, self.reads)

    def card_example(self, fields: Mapping[str, Any]) -> str:
        return f"print(bert.predict([{'(' + ', '.join(_EXAMPLES) + ')' if _is_of_pairs(fields) else _EXAMPLES[0]}]))"

    def transformers_example(self, fields: Mapping[str, Any]) -> str:
        first, second = _EXAMPLES
        example = f'{{"text": {first}, "text_pair": {second}}}' if _is_of_pairs(fields) else first
        every = ", top_k=None" if fields.get("problem_type") == MULTI_LABEL else ""
        return transformers_pipeline(str(self.pipeline), example, every)

    def unnamed_labels(self, head: Any) -> tuple[str, ...]:
        return head.labels if head.is_unnamed and head.problem_type != REGRESSION else ()

    def answer(self, bert: Any, examples: Sequence[Any]) -> list[Any]:
        from keras_bert.export.serving_function import serving_function
        from keras_bert.inference.texts import text_list
        from keras_bert.tasks.classification.in_python import class_answer, text_columns

        fields = bert.folder.other_fields
        own = own_field(fields)
        columns = text_columns(text_list(examples, pairs=True), own.get("pair"))
        if not examples:
            return []

        def function() -> Any:
            # Other libraries' folders do not record whether they take pairs.
            said = {**fields, FIELD: {"pair": len(columns) == 2, **own}}
            folder = dataclasses.replace(bert.folder, other_fields=said)
            return serving_function(dataclasses.replace(bert, folder=folder))

        answering = bert.once(f"answers to {len(columns)} columns", function)
        return [class_answer(bert.head, row) for row in answering.answers_by_length(*columns)]

    def texts_per_example(self, own: Mapping[str, Any]) -> int:
        return 2 if own.get("pair") else 1

    def answers_shown(self, bert: Any, texts: list[str]) -> list[str]:
        examples: list[Any] = in_pairs(texts, "pairs of texts") if self.takes_pairs(bert) else texts
        lines = []
        for example, answer in zip(examples, bert.predict(examples), strict=True):
            if isinstance(answer, float):
                answers = [f"{answer:.3f}"]
            elif isinstance(answer, dict):  # Multi-label: each label has its own probability.
                chosen = ranked((label, share) for label, share in answer.items() if share > 0.5)
                others = ranked((label, share) for label, share in answer.items() if share <= 0.5)
                answers = ["  ".join(chosen) or "no label", *(["  ".join(others)] if others else [])]
            else:
                answers = ["  ".join(ranked(answer.probabilities.items()))]
            lines += shown([example] if isinstance(example, str) else example, answers)
        return lines


class NextSentence(Classification):
    """Whether a text follows another. No task trains it alone: it is a head of pretraining."""

    head: ClassVar[type[Any]] = NextSentenceConfig
    model = "keras_bert.tasks.classification.network:BertForNextSentencePrediction"
    part, tasks, own_task = NEXT_SENTENCE_HEAD, (), None
    tensors, titles = {}, {}
    in_google = takes_bilstm = weighs_classes = False

    def model_arguments(self, head: ClassificationConfig) -> dict[str, Any]:
        return {}

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        text_inputs.reading = dataclasses.replace(text_inputs.reading, pair=True)
        return super().signatures(bert, text_inputs, network, n_best)

    def logits(self, network: Any, inputs: Mapping[str, Any]) -> Any:
        pooled = network.pooled(inputs)
        return network.run(lambda model: model.nsp_head(pooled))

    def card_example(self, fields: Mapping[str, Any]) -> str:
        return f"print(bert.predict([({', '.join(_EXAMPLES)})]))"

    def transformers_example(self, fields: Mapping[str, Any]) -> str:
        return (
            "from transformers import AutoModelForNextSentencePrediction, AutoTokenizer\n\n"
            'model = AutoModelForNextSentencePrediction.from_pretrained(".")\n'
            f"inputs = AutoTokenizer.from_pretrained('.')({', '.join(_EXAMPLES)}, return_tensors='pt')\n"
            "print(model(**inputs).logits.softmax(-1))"
        )

    def answer(self, bert: Any, examples: Sequence[Any]) -> list[Any]:
        from keras_bert.inference.texts import text_list
        from keras_bert.tasks.classification.in_python import text_columns

        text_columns(text_list(examples, pairs=True), pair=True)  # Raises for single texts.
        return super().answer(bert, examples)

    def takes_pairs(self, bert: Any) -> bool:
        return True


def _is_of_pairs(fields: Mapping[str, Any]) -> bool:
    return bool(own_field(fields).get("pair"))


KINDS = (Classification(), NextSentence())
