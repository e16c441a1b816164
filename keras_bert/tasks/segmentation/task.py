"""Finds the words in texts that are written without blanks or have lost them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.tasks.segmentation.data import segmented_reader
from keras_bert.tasks.shown_answers import shown
from keras_bert.tasks.tagging.head import CrfTaggingConfig
from keras_bert.tasks.tagging.task import TREEBANK_FILES, CrfTagging, TaggingTask
from keras_bert.tasks.task import Split


@dataclass(frozen=True)
class SegmentationConfig(CrfTaggingConfig):
    """The head of a `BertSegmenter`, whose labels of characters say where words begin and end."""

    architecture: ClassVar[str] = "BertSegmenter"


class Segmentation(CrfTagging):
    """A conditional random field over the characters of a text."""

    head: ClassVar[type[Any]] = SegmentationConfig
    model = "keras_bert.tasks.tagging.network:BertSegmenter"
    tasks: ClassVar[tuple[str, ...]] = ("segment",)
    own_task = "segment"
    noun, example_files = "characters", ("texts.txt", "segmented.txt")
    reads = ("texts", "format")

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.tasks.segmentation.serving import segmentation_signatures

        return segmentation_signatures(
            bert.head.labels, text_inputs, network, lambda inputs: self.logits(network, inputs)
        )

    def open_problem(
        self, config: FinetuneConfig, tokenizer: Any, head: Any, task_record: Mapping[str, Any], own: Mapping[str, str]
    ) -> Any:
        from keras_bert.tasks.segmentation.problem import SegmentationProblem
        from keras_bert.tasks.sources import find_split_files

        source = own or find_split_files(SEGMENT, config.data.folder)
        return SegmentationProblem(SEGMENT, source, tokenizer, config, head, task_record)

    def card_example(self, fields: Mapping[str, Any]) -> str:
        return 'print(keras_bert.serving_function(bert)(["thecatsat"])["words"])'

    def answer(self, bert: Any, examples: Sequence[Any]) -> list[Any]:
        from keras_bert.export.serving_function import signatures_of
        from keras_bert.inference.texts import text_list

        function = signatures_of(bert)
        return [row["segmented"].decode("utf-8") for row in function.answers_by_length(text_list(examples))]

    def answers_shown(self, bert: Any, texts: list[str]) -> list[str]:
        return [line for text, answer in zip(texts, bert.predict(texts)) for line in shown([text], [answer])]


KINDS = (Segmentation(),)


SEGMENT = TaggingTask(
    "segment",
    segmented_reader,
    in_columns=False,
    marks_entities=False,
    splits={name: Split((*split.files, f"{name}.*")) for name, split in TREEBANK_FILES.items()},
)
