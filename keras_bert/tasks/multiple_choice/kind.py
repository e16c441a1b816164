"""One of several choices."""

from keras_bert.checkpoints.names import CLASSIFIER
from keras_bert.config.heads import MultipleChoiceConfig
from keras_bert.task_kinds import TaskKind
from keras_bert.tasks.multiple_choice.tasks import MULTIPLE_CHOICE


class MultipleChoice(TaskKind):
    """One number for each choice (paper, section 4.4)."""

    head, part, tasks = MultipleChoiceConfig, CLASSIFIER, tuple(MULTIPLE_CHOICE)
    pipeline = "multiple-choice"
    example_files = ("choices.csv", "answers.jsonl")

    def make_model(self, config, head, **keras_options):
        from keras_bert.models.multiple_choice import BertForMultipleChoice

        return BertForMultipleChoice(config, **keras_options)

    def signatures(self, bert, text_inputs, network, n_best):
        from keras_bert.export.multiple_choice import multiple_choice_signatures

        return multiple_choice_signatures(text_inputs, network)

    def open_problem(self, config, tokenizer, head, described, own):
        from keras_bert.tasks.examples.sources import TfdsSource
        from keras_bert.tasks.examples.split_files import found_files
        from keras_bert.tasks.multiple_choice.problem import MultipleChoiceProblem

        task, folder = MULTIPLE_CHOICE[config.task], config.data.folder
        files_of = own or (TfdsSource(download=True) if not folder and task.tfds else None)
        return MultipleChoiceProblem(task, files_of or found_files(task, folder), tokenizer, config.input)


KINDS = (MultipleChoice(),)
