"""The tasks of finding an answer in a passage, as data: SQuAD 1.1 and 2.0, CMRC 2018, and the user's own files."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from keras_bert.config.checks import require
from keras_bert.errors import UserError
from keras_bert.tasks.task import PublishedScore, Split

WORDS, CHARACTERS = SCORINGS = ("words", "characters")

# The longest answer to search for, in pieces: run_squad.py's default; answers in CMRC 2018 are whole sentences.
_LONGEST = {WORDS: 30, CHARACTERS: 100}


@dataclass(frozen=True)
class SpanTask:
    """Everything that distinguishes one task whose answers are spans of a passage from another.

    Attributes:
        name: as in `--task NAME`.
        splits: `{name: Split}`; names start with "train", "dev" or "test".
        scoring: "words" as in SQuAD's scripts; "characters" as in CMRC 2018's, where every question has an answer.
        unanswerable: whether a passage may have no answer (SQuAD 2.0); None if the training split decides, by whether
            it has such a question.
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


def qa_task(
    *,
    train: str | None = None,
    dev: str | None = None,
    test: str | None = None,
    scoring: str = WORDS,
    unanswerable: bool | None = None,
    dev_share: float = 0.1,
    max_answer_length: int | None = None,
) -> SpanTask:
    """The task of a user's files in SQuAD's format.

    Without `dev`, a share of the training file is held out by the hash of each passage, so that all questions about it
    are on the same side. A test file needs no answers.

    Args:
        train, dev, test: files, None if there is none.
        scoring: of `SCORINGS`.
        unanswerable: see `SpanTask`; given for a trained model.
        dev_share: the share held out.
        max_answer_length: see `SpanTask`; by default 30, or 100 if characters are scored.

    Raises:
        UserError: an argument is invalid.
    """
    if scoring not in SCORINGS:
        raise UserError(f"data.scoring: needs one of {', '.join(SCORINGS)}. Received: {scoring!r}.")
    if not 0.0 < dev_share < 1.0:
        raise UserError(f"data.dev_share: needs a share between 0 and 1. Received: {dev_share!r}.")
    max_answer_length = _LONGEST[scoring] if max_answer_length is None else max_answer_length
    if max_answer_length < 1:
        raise UserError(f"max_answer_length: needs at least one piece. Received: {max_answer_length!r}.")
    if scoring == CHARACTERS and unanswerable:
        raise UserError("data.scoring: needs words if questions may be unanswerable. Received: characters.")
    splits = {}
    if train:
        splits["train"] = Split((train,), side=None if dev else "train")
    if validation := dev or train:
        splits["dev"] = Split((validation,), side=None if dev else "dev")
    if test:
        splits["test"] = Split((test,), labelled=None)
    return SpanTask(
        "qa",
        splits,
        scoring=scoring,
        unanswerable=unanswerable,
        dev_share=dev_share,
        max_answer_length=max_answer_length,
    )
