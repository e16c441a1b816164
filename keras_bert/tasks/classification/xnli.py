"""XNLI (Conneau et al. 2018), as data: entailment in fifteen languages.

Training is in one language: English, to transfer from (zero-shot), or another, into which MultiNLI was translated
(translate-train). The dev and test sets, which people translated, have a split for each language.

The files are XNLI's own: multinli.train.LANGUAGE.tsv of XNLI-MT-1.0 and xnli.dev.tsv, xnli.test.tsv of XNLI-1.0.
"""

from keras_bert.config.heads import SINGLE_LABEL
from keras_bert.errors import UserError
from keras_bert.tasks.task import PublishedScore, Split, Task

LANGUAGES = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")
_FOLDERS = ("XNLI-1.0", "XNLI", "XNLI-MT-1.0/multinli", "multinli")

# Accuracies of Google's multilingual BERT base on the test set, from its repository (multilingual.md).
_PUBLISHED = {
    "BERT base, translate-train, cased": (81.9, 76.6, 77.8, 75.9, 70.7, 61.6),
    "BERT base, zero-shot, uncased": (81.4, 63.8, 74.3, 70.5, 62.1, 58.3),
}
_PUBLISHED_LANGUAGES = ("en", "zh", "es", "de", "ar", "ur")


def xnli_task(language: str) -> Task:
    """The task with training in one language, whose dev set is the main one.

    Raises:
        UserError: XNLI does not have the language.
    """
    if language not in LANGUAGES:
        raise UserError(f"data.language: needs one of {', '.join(LANGUAGES)}. Received: {language!r}.")
    # The file of training names its columns and one of its labels otherwise.
    renamed = {"sentence1": "premise", "sentence2": "hypo", "gold_label": "label"}
    splits = {"train": Split((f"multinli.train.{language}.tsv",), renamed=renamed)}
    for split in ("dev", "test"):
        for name in (language, *(other for other in LANGUAGES if other != language)):
            splits[f"{split}_{name}"] = Split((f"xnli.{split}.tsv",), where=("language", name))
    return Task(
        name="xnli",
        kind=SINGLE_LABEL,
        texts=("sentence1", "sentence2"),
        label="gold_label",
        splits=splits,
        metrics=("accuracy",),
        labels=("entailment", "neutral", "contradiction"),
        also_written={"contradictory": "contradiction"},
        folders=_FOLDERS,
        format="raw_tsv",
        published=tuple(
            PublishedScore(system, "accuracy", value, f"test_{name}")
            for system, values in _PUBLISHED.items()
            for name, value in zip(_PUBLISHED_LANGUAGES, values)
        ),
    )
