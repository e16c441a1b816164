"""Classification from a few labelled texts (SetFit; Tunstall et al. 2022)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.models.tensor_names import dense
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.task import Classification

NAME = "few-shot"
PART = "logistic_head"


@dataclasses.dataclass(frozen=True)
class FewShotConfig(ClassificationConfig):
    """The head of a `BertForFewShotClassification`, for which transformers has no class."""

    architecture: ClassVar[str] = "BertForFewShotClassification"


class FewShot(Classification):
    """A class for a text or a pair of texts, learned from a few examples of each class."""

    head, part = FewShotConfig, PART
    model = "keras_bert.tasks.few_shot.network:BertForFewShotClassification"
    tasks, own_task = (NAME,), NAME
    reads = ("texts", "label", "format", "columns", "dev_share", "shots")
    tensors = {PART: dense(f"{PART}.dense", f"keras_bert.{PART}")}
    titles = {PART: "logistic head"}
    in_transformers = pools = in_google = takes_bilstm = weighs_classes = takes_teacher = False

    def logits(self, network: Any, inputs: Mapping[str, Any]) -> Any:
        from keras_bert.layers.pooling import mean_vectors

        vectors = mean_vectors(network.encode(inputs)["sequence_output"], inputs["input_mask"])
        return network.run(lambda model: model.logistic_head(vectors))

    def open_problem(
        self, config: FinetuneConfig, tokenizer: Any, head: Any, task_record: Mapping[str, Any], own: Mapping[str, str]
    ) -> Any:
        from keras_bert.tasks.classification.data import own_table, require_columns
        from keras_bert.tasks.few_shot.problem import FewShotProblem
        from keras_bert.tasks.task import INPUT, with_own_files

        task = dataclasses.replace(own_table(config.data, head), name=NAME)
        require_columns(task, task_record)
        if INPUT in own:
            task = with_own_files(task, own, tuple(config.data.columns) or None)
        return FewShotProblem(task, "", tokenizer, config, head, task_record)


KINDS = (FewShot(),)
