"""Choosing one of several continuations or answers."""

from collections.abc import Collection, Mapping
from typing import Any

from keras_bert.checkpoints.names import CLASSIFIER
from keras_bert.config.bert import BertConfig
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.heads import MultipleChoiceConfig
from keras_bert.task_kinds import TaskKind
from keras_bert.tasks.multiple_choice.tasks import MULTIPLE_CHOICE

_EXAMPLE = 'context, choices = "She opened her umbrella.", ["It had begun to rain.", "The soup was cold."]'
_IN_TRANSFORMERS = f"""\
import torch
from transformers import AutoModelForMultipleChoice, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForMultipleChoice.from_pretrained(".")
{_EXAMPLE}
inputs = tokenizer([context] * len(choices), choices, padding=True, return_tensors="pt")
with torch.no_grad():
    logits = model(**{{name: rows[None] for name, rows in inputs.items()}}).logits
print(choices[int(logits.argmax())])"""


class MultipleChoice(TaskKind):
    """One score for each choice (paper, section 4.4)."""

    head, part, tasks = MultipleChoiceConfig, CLASSIFIER, tuple(MULTIPLE_CHOICE)
    own_task = "choice"
    pools = True
    pipeline = "multiple-choice"
    example_files = ("choices.csv", "answers.jsonl")

    def make_model(self, config: BertConfig, head: MultipleChoiceConfig, **keras_options: Any) -> Any:
        from keras_bert.models.multiple_choice import BertForMultipleChoice

        return BertForMultipleChoice(config, bilstm_size=head.bilstm_size, **keras_options)

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.export.multiple_choice import multiple_choice_signatures

        return multiple_choice_signatures(text_inputs, network)

    def open_problem(
        self,
        config: FinetuneConfig,
        tokenizer: Any,
        head: MultipleChoiceConfig | None,
        described: Mapping[str, Any],
        own: Mapping[str, str],
    ) -> Any:
        from keras_bert.tasks.examples.sources import TfdsSource, data_source
        from keras_bert.tasks.examples.split_files import find_split_files, task_folder
        from keras_bert.tasks.multiple_choice.problem import MultipleChoiceProblem
        from keras_bert.tasks.task import Split

        task, folder = MULTIPLE_CHOICE[config.task], config.data.folder
        source: Mapping[str, str] | TfdsSource
        if own:
            source = own
        elif not task.tfds or isinstance(
            place := data_source(task.data_set, folder, map(Split, task.patterns.values())), str
        ):
            source = find_split_files(task, task_folder(folder, task.folders) if folder else None)
        else:
            source = place
        return MultipleChoiceProblem(
            task=task, source=source, tokenizer=tokenizer, config=config, head=head, described=described
        )

    def card_example(self, fields: Mapping[str, Any]) -> str:
        return f'{_EXAMPLE}\nprint(choices[keras_bert.serving_function(bert)([context], [""], [choices])["choice"][0]])'

    def transformers_example(self, fields: Mapping[str, Any]) -> str:
        return _IN_TRANSFORMERS

    def data_fields(self, task: str) -> Collection[str]:
        return ()


KINDS = (MultipleChoice(),)
