"""Answers that are spans of a passage."""

from keras_bert.checkpoints.names import SPAN_HEAD
from keras_bert.config.answering import AnsweringConfig
from keras_bert.config.heads import SpanExtractionConfig
from keras_bert.task_kinds import TaskKind
from keras_bert.tasks.question_answering.squad import QUESTION_ANSWERING, qa_task

OWN = "qa"  # The user's own files, in SQuAD's format.
_STRIDE = 128  # run_squad.py's doc_stride.


class QuestionAnswering(TaskKind):
    """Where an answer starts and where it ends (paper, sections 4.2 and 4.3)."""

    head, part, tasks = SpanExtractionConfig, SPAN_HEAD, (*QUESTION_ANSWERING, OWN)
    in_google = True
    pipeline = "question-answering"
    answers_in_folder = True
    noun, example_files = "questions", ("questions.json", "answers")

    def make_model(self, config, head, **keras_options):
        from keras_bert.models.span_extraction import BertForQuestionAnswering

        return BertForQuestionAnswering(config, **keras_options)

    def signatures(self, bert, text_inputs, network, n_best):
        from keras_bert.export.question_answering import question_answering_signatures

        answering = AnsweringConfig.from_fields(bert.folder.other_fields, f"{bert.path}/config.json")
        return question_answering_signatures(answering, text_inputs, network, n_best)

    def open_problem(self, config, tokenizer, head, described, own):
        from keras_bert.tasks.examples.sources import data_source
        from keras_bert.tasks.question_answering.problem import QuestionAnsweringProblem
        from keras_bert.tasks.task import INPUT, with_own_files

        data, settings = config.data, config.input
        if config.task == OWN:
            of_task = {} if INPUT in own else own
            task = qa_task(
                **of_task, scoring=data.scoring, dev_share=data.dev_share, unanswerable=described.get("unanswerable")
            )
        else:
            task = QUESTION_ANSWERING[config.task]
        if own and (config.task != OWN or INPUT in own):
            task = with_own_files(task, own)
        return QuestionAnsweringProblem(
            task,
            tokenizer,
            "" if own else data_source(task.tfds, data.folder),
            settings.max_length,
            settings.stride or _STRIDE,
            settings.max_question_length,
            null_threshold=described.get("null_threshold"),
        )


KINDS = (QuestionAnswering(),)
