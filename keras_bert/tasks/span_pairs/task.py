"""Classifies two spans: whether a word means the same in two texts, or whether a pronoun stands for a phrase."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.reading import own_field
from keras_bert.models.tensor_names import dense, own_tensor
from keras_bert.tasks import superglue
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.kind import TaskKind
from keras_bert.tasks.task import Task


@dataclass(frozen=True)
class SpanPairConfig(ClassificationConfig):
    """The head of a `BertForSpanPairs`, for which transformers has no class.

    Attributes:
        reads_cls: whether the head sees the pooled [CLS] besides the two spans.
    """

    architecture: ClassVar[str] = "BertForSpanPairs"
    own_settings: ClassVar[tuple[str, ...]] = ("reads_cls",)
    reads_cls: bool = True


@dataclass(frozen=True)
class SpanPairTask(Task):
    """A classification of two spans: both in one text, or one in each text of a pair.

    Attributes:
        reads_cls: whether the head sees the pooled [CLS] besides the spans.
    """

    reads_cls: bool = True


# Both follow Wang et al. 2019, section 4.1: WiC's classifier sees [CLS] and the marked word, WSC's only the spans.
WIC = superglue.new_task(SpanPairTask, "wic", texts=("sentence1", "sentence2"), written=("false", "true"))
# The server wants capitals; in the file, a label is true or false.
WSC = superglue.new_task(SpanPairTask, "wsc", texts=("text",), reads_cls=False)
SPAN_PAIRS = {task.name: task for task in (WIC, WSC)}


PART = "span_classifier"


class SpanPairs(TaskKind):
    """A label for two spans (Wang et al. 2019, section 4.1)."""

    head, part, tasks = SpanPairConfig, PART, tuple(SPAN_PAIRS)
    model = "keras_bert.tasks.span_pairs.network:BertForSpanPairs"
    has_own_rows = True
    tensors = {
        PART: (
            own_tensor(f"{PART}.attention.kernel", f"{PART}.attention"),
            *dense(f"{PART}.classifier.dense", f"keras_bert.{PART}.classifier"),
        )
    }
    titles = {PART: "classifier of two spans"}
    in_transformers = False
    takes_bilstm = True
    pipeline = "text-classification"
    example_files = ("spans.jsonl", "answers.jsonl")
    reads, texts = (), 0

    def model_arguments(self, head: SpanPairConfig) -> dict[str, Any]:
        return {**super().model_arguments(head), "num_labels": head.num_labels, "reads_cls": head.reads_cls}

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.tasks.span_pairs.serving import span_pair_signatures

        return span_pair_signatures(bert.head, text_inputs, network)

    def open_problem(
        self, config: FinetuneConfig, tokenizer: Any, head: Any, task_record: Mapping[str, Any], own: Mapping[str, str]
    ) -> Any:
        from keras_bert.tasks.sources import data_source
        from keras_bert.tasks.span_pairs.problem import SpanPairProblem
        from keras_bert.tasks.task import with_own_files

        task = SPAN_PAIRS[config.task]
        if own:
            return SpanPairProblem(with_own_files(task, own), "", tokenizer, config, head, task_record)
        source = data_source(superglue.tfds_name(task.name), config.data.folder, task.splits.values())
        return SpanPairProblem(task, source, tokenizer, config, head, task_record)

    def answer(self, bert: Any, examples: Sequence[Any]) -> list[Any]:
        from keras_bert.export.serving_function import signatures_of
        from keras_bert.inference.texts import text_list
        from keras_bert.tasks.classification.in_python import class_answer

        function = signatures_of(bert)
        for example in examples:
            is_whole = isinstance(example, Mapping) and set(example) == set(function.columns)
            if not is_whole or not all(map(_are_two_places, (example["starts"], example["ends"]))):
                needed = f"a dict of {', '.join(function.columns)}, the last two with a whole number for each span"
                raise ValueError(f"texts: needs {needed}. Received: {str(example)[:80]}.")
        *texts, starts, ends = ([example[name] for example in examples] for name in function.columns)
        columns = [*map(text_list, texts), starts, ends]
        rows = function.answers_by_length(*columns, may_lack="label")
        for example, row in zip(examples, rows, strict=True):
            if not row["label"]:
                raise ValueError(
                    f"texts: needs two spans that are not empty, among the first "
                    f"{function.text_inputs.reading.max_length} tokens, special tokens included. "
                    f"Received: {str(example)[:80]}. Give other offsets, or a shorter text."
                )
        return [class_answer(bert.head, row) for row in rows]

    def card_example(self, fields: Mapping[str, Any]) -> str:
        if own_field(fields).get("pair"):
            texts, starts, ends = '["By the bank."], ["In the bank."]', [7, 7], [11, 11]
        else:
            texts, starts, ends = '["Mary sang, and she smiled."]', [0, 15], [4, 18]
        return f'print(keras_bert.serving_function(bert)({texts}, [{starts}], [{ends}])["label"])'


def _are_two_places(places: Any) -> bool:
    return isinstance(places, (list, tuple)) and len(places) == 2 and all(isinstance(one, Integral) for one in places)


KINDS = (SpanPairs(),)
