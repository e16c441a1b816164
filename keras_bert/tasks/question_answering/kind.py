"""Answers that are spans of a passage."""

from collections.abc import Collection, Mapping
from typing import Any

from keras_bert.checkpoints.names import SPAN_HEAD
from keras_bert.config.answering import AnsweringConfig
from keras_bert.config.bert import BertConfig
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.heads import SpanExtractionConfig
from keras_bert.task_kinds import TaskKind
from keras_bert.tasks.question_answering.squad import QUESTION_ANSWERING, qa_task

OWN = "qa"  # The user's own files, in SQuAD's format.

_EXAMPLE = 'question, passage = "Where was the novel written?", "Mary Shelley wrote the novel in Geneva."'
# Its version 5 has no pipeline for questions.
_IN_TRANSFORMERS = f"""\
import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForQuestionAnswering.from_pretrained(".")
{_EXAMPLE}
inputs = tokenizer(question, passage, return_tensors="pt")
with torch.no_grad():
    outputs = model(**inputs)
scores = outputs.start_logits[0].softmax(0)[:, None] * outputs.end_logits[0].softmax(0)
first, last = divmod(int(scores.triu().argmax()), len(scores))
print(tokenizer.decode(inputs["input_ids"][0, first : last + 1]))"""


class QuestionAnswering(TaskKind):
    """Where an answer starts and where it ends (paper, sections 4.2 and 4.3)."""

    head, part, tasks = SpanExtractionConfig, SPAN_HEAD, (*QUESTION_ANSWERING, OWN)
    own_task = OWN
    in_google = True
    pipeline = "question-answering"
    answers_in_folder = True
    noun, example_files = "questions", ("questions.json", "answers")

    def make_model(self, config: BertConfig, head: SpanExtractionConfig, **keras_options: Any) -> Any:
        from keras_bert.models.span_extraction import BertForQuestionAnswering

        return BertForQuestionAnswering(config, bilstm_size=head.bilstm_size, **keras_options)

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.export.question_answering import question_answering_signatures

        answering = AnsweringConfig.from_fields(bert.folder.other_fields, f"{bert.path}/config.json")
        return question_answering_signatures(answering, text_inputs, network, n_best)

    def open_problem(
        self,
        config: FinetuneConfig,
        tokenizer: Any,
        head: SpanExtractionConfig | None,
        described: Mapping[str, Any],
        own: Mapping[str, str],
    ) -> Any:
        from keras_bert.tasks.examples.sources import data_source
        from keras_bert.tasks.question_answering.problem import QuestionAnsweringProblem
        from keras_bert.tasks.task import INPUT, with_own_files

        data = config.data
        if config.task == OWN:
            given: dict[str, Any] = {} if INPUT in own else dict(own)
            task = qa_task(
                **given,
                scoring=data.scoring,
                dev_share=data.dev_share,
                unanswerable=described.get("unanswerable", False if INPUT in own else None),
            )
        else:
            task = QUESTION_ANSWERING[config.task]
        if own and (config.task != OWN or INPUT in own):
            task = with_own_files(task, own)
        source = "" if own else data_source(task.tfds, data.folder, task.splits.values())
        return QuestionAnsweringProblem(
            task=task, source=source, tokenizer=tokenizer, config=config, head=head, described=described
        )

    def card_example(self, fields: Mapping[str, Any]) -> str:
        return f'{_EXAMPLE}\nprint(keras_bert.serving_function(bert)([question], [passage])["answer"])'

    def transformers_example(self, fields: Mapping[str, Any]) -> str:
        return _IN_TRANSFORMERS

    def data_fields(self, task: str) -> Collection[str]:
        return ("scoring", "dev_share") if task == OWN else ()


KINDS = (QuestionAnswering(),)
