"""Answers that are spans of a passage."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from keras_bert.config.finetuning import FinetuneConfig, TaskDataConfig
from keras_bert.config.reading import LONG, read_own_field
from keras_bert.core.errors import UserError
from keras_bert.core.settings import Checked, NotNegative, Positive, require
from keras_bert.models.tensor_names import output_layer
from keras_bert.tasks.head import Head
from keras_bert.tasks.kind import TaskKind
from keras_bert.tasks.shown_answers import in_pairs, ranked, shown
from keras_bert.tasks.task import PublishedScore, Split, own_splits

OWN = "qa"  # The user's own files, in SQuAD's format.
WORDS, CHARACTERS = SCORINGS = ("words", "characters")

# The longest answer to search for, in pieces: run_squad.py's default; answers in CMRC 2018 are whole sentences.
_LONGEST = {WORDS: 30, CHARACTERS: 100}


SPAN_HEAD = "qa_outputs"


@dataclass(frozen=True)
class SpanExtractionConfig(Head):
    """The head of a `BertForQuestionAnswering`."""

    architecture: ClassVar[str] = "BertForQuestionAnswering"
    outputs: ClassVar[tuple[str, ...]] = ("start", "end")


@dataclass(frozen=True)
class SpanTask:
    """What distinguishes one task whose answers are spans of a passage from another.

    Attributes:
        name: as in `--task NAME`.
        splits: `{name: Split}`; names start with "train", "dev" or "test".
        scoring: "words" as in SQuAD's scripts; "characters" as in CMRC 2018's, where every question has an answer.
        unanswerable: whether a question may have no answer (SQuAD 2.0); None to look for such a question in the
            training split.
        folders: names of the task's folder.
        tfds: the name of the same questions in TFDS.
        dev_share: share of the dev side if `Split.side` divides one file.
        max_answer_length: the longest answer to search for, in pieces.
        published: published scores.
    """

    name: str
    splits: Mapping[str, Split]
    scoring: str = WORDS
    unanswerable: bool | None = False
    folders: tuple[str, ...] = ()
    tfds: str | None = None
    dev_share: float = 0.1
    max_answer_length: int = _LONGEST[WORDS]
    published: tuple[PublishedScore, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        require(self.scoring in SCORINGS, "scoring", f"one of {', '.join(SCORINGS)}", self.scoring)
        if self.scoring == CHARACTERS:
            require(not self.unanswerable, "unanswerable", "false if characters are scored", self.unanswerable)
        require(self.max_answer_length > 0, "max_answer_length", "at least one piece", self.max_answer_length)


def _squad(version: str) -> dict[str, Split]:
    return {
        "train": Split((f"train-v{version}.json",), tfds="train"),
        "dev": Split((f"dev-v{version}.json",), tfds="validation"),
    }


# Scores of single models and of humans, from the paper's tables 2 and 3.
SQUAD = SpanTask(
    "squad",
    _squad("1.1"),
    folders=("squad", "SQuAD"),
    tfds="squad/v1.1",
    published=(
        PublishedScore("BERT base", "exact_match", 80.8, "dev"),
        PublishedScore("BERT base", "f1", 88.5, "dev"),
        PublishedScore("BERT large", "exact_match", 84.1, "dev"),
        PublishedScore("BERT large", "f1", 90.9, "dev"),
        PublishedScore("human", "exact_match", 82.3, "test"),
        PublishedScore("human", "f1", 91.2, "test"),
    ),
)
SQUAD_V2 = SpanTask(
    "squad_v2",
    _squad("2.0"),
    unanswerable=True,
    folders=("squad_v2", "squad", "SQuAD"),
    tfds="squad/v2.0",
    published=(
        PublishedScore("BERT large", "best_exact", 78.7, "dev"),
        PublishedScore("BERT large", "best_f1", 81.9, "dev"),
        PublishedScore("human", "best_exact", 86.3, "dev"),
        PublishedScore("human", "best_f1", 89.0, "dev"),
    ),
)
CMRC = SpanTask(
    "cmrc",
    {
        "train": Split(("cmrc2018_train.json",)),
        "dev": Split(("cmrc2018_dev.json",)),
        "dev_trial": Split(("cmrc2018_trial.json",)),
    },
    scoring=CHARACTERS,
    folders=("cmrc2018", "squad-style-data"),
    max_answer_length=_LONGEST[CHARACTERS],
)

QUESTION_ANSWERING = {task.name: task for task in (SQUAD, SQUAD_V2, CMRC)}


def own_questions(data: TaskDataConfig, unanswerable: bool | None) -> SpanTask:
    """The task of a user's files in SQuAD's format; `unanswerable`, see `SpanTask`, is given for a trained model.

    Without a dev file, a share of the training file is held out by the hash of each passage, so that all questions
    about it are on the same side. A test file needs no answers.

    Raises:
        UserError: `unanswerable` contradicts the scoring.
    """
    if data.scoring == CHARACTERS and unanswerable:
        raise UserError("data.scoring: needs words if questions may be unanswerable. Received: characters.")
    return SpanTask(
        OWN,
        own_splits(data),
        scoring=data.scoring,
        unanswerable=unanswerable,
        dev_share=data.dev_share,
        max_answer_length=_LONGEST[data.scoring],
    )


@dataclass(frozen=True)
class AnsweringConfig(Checked):
    """The question-answering settings in config.json's field `keras_bert`. The defaults are run_squad.py's.

    Attributes:
        max_question_length: pieces to which a question is truncated.
        max_answer_length: pieces in the longest answer.
        stride: pieces from the start of one window of a passage to the start of the next.
        unanswerable: whether a question may have no answer.
        null_threshold: "no answer" is predicted if its score exceeds that of the best answer by more than this.
    """

    max_question_length: NotNegative[int] = 64
    max_answer_length: Positive[int] = 30
    stride: Positive[int] = 128
    unanswerable: bool = False
    null_threshold: float = 0.0


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
    model = "keras_bert.tasks.question_answering.network:BertForQuestionAnswering"
    tensors = {SPAN_HEAD: output_layer("qa_outputs.dense", "qa_outputs", "cls/squad/")}
    titles = {SPAN_HEAD: "answer span head"}
    own_task = OWN
    in_google = True
    pipeline = "question-answering"
    takes_bilstm = cuts_questions = answers_in_folder = lists_answers = True
    strides = LONG  # Passages are always read in windows.
    noun, example_files = "questions", ("questions.json", "answers")
    texts = 2

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.tasks.question_answering.serving import question_answering_signatures

        return question_answering_signatures(_answering(bert), text_inputs, network, n_best)

    def open_problem(
        self, config: FinetuneConfig, tokenizer: Any, head: Any, task_record: Mapping[str, Any], own: Mapping[str, str]
    ) -> Any:
        from keras_bert.tasks.question_answering.problem import QuestionAnsweringProblem
        from keras_bert.tasks.sources import data_source
        from keras_bert.tasks.task import INPUT, with_own_files

        data = config.data
        if config.task == OWN:
            task = own_questions(data, task_record.get("unanswerable", False if INPUT in own else None))
        else:
            task = QUESTION_ANSWERING[config.task]
        if own and (config.task != OWN or INPUT in own):
            task = with_own_files(task, own)
        source = "" if own else data_source(task.tfds, data.folder, task.splits.values())
        return QuestionAnsweringProblem(task, source, tokenizer, config, head, task_record)

    def card_example(self, fields: Mapping[str, Any]) -> str:
        return f'{_EXAMPLE}\nprint(keras_bert.serving_function(bert)([question], [passage])["answer"])'

    def transformers_example(self, fields: Mapping[str, Any]) -> str:
        return _IN_TRANSFORMERS

    def answer(self, bert: Any, examples: Sequence[Any]) -> list[Any]:
        from keras_bert.export.serving_function import signatures_of
        from keras_bert.tasks.question_answering.in_python import passage_answers

        return passage_answers(signatures_of(bert), examples, _answering(bert).unanswerable)

    def answers_shown(self, bert: Any, texts: list[str]) -> list[str]:
        asked = in_pairs(texts, "a question and the passage with its answer")
        lines = []
        for (question, _), answer in zip(asked, bert.predict(asked), strict=True):
            named = {text or "no answer": probability for text, probability in answer.candidates.items()}
            text = answer.text or "no answer"
            first = ranked([(text, named.pop(text, 0.0))])
            lines += shown([question], [*first, *ranked(named.items())])
        return lines

    def data_fields(self, task: str) -> Collection[str]:
        return ("scoring", "dev_share") if task == OWN else ()


def _answering(bert: Any) -> AnsweringConfig:
    """How a `LoadedModel` answers. Raises `UserError` for an invalid value in its config.json."""
    return read_own_field(AnsweringConfig, bert.folder.other_fields, f"{bert.path}/config.json")


KINDS = (QuestionAnswering(),)
