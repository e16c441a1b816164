"""Scores the mean of several models' outputs."""

from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert.core.errors import UserError
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.kind import kind_of_head

# Sizes of layers between the encoder and a head's outputs; they do not change what an output means.
_SIZES = ("bilstm_size", "features", "lstm_size")
_SHOWN = 60


class Ensemble:
    """Scores the averaged outputs of several models, or a single model as it is.

    Args:
        models: models of the same task with the same labels, vocabulary and tokenizer, which read the same rows.

    Attributes:
        problem: the first model's, used for all; with several models, without what was tuned for the first.

    Raises:
        UserError: the models write texts, or one differs in task, labels or reading; the message says which and how.
    """

    def __init__(self, models: Sequence[FinetunedModel]):
        self._models, self.problem = models, models[0].problem
        if len(models) > 1 and kind_of_head(self.problem.head).writes_texts:
            raise UserError(
                f"--model: needs one model for {self.problem.task.name}. Received: {len(models)}. Score each by itself."
            )
        first = _compared(models[0])
        for number, model in enumerate(models[1:], 2):
            for what, values in _compared(model).items():
                difference = _difference(first[what], values)
                if difference:
                    raise UserError(
                        f"--model: needs models with the same {what}. Received: model {number} with {difference}. "
                        "Score it by itself, or fine-tune it as model 1 was."
                    )
        if len(models) > 1:
            self.problem.forget_tuning(of_model=True)

    def evaluate(self, split: str) -> dict[str, float]:
        """The scores on a split with labels; for a single model also its objective's figures."""
        if len(self._models) == 1:
            return self._models[0].evaluate(split)
        rows = self.problem.rows(split)
        outputs = [model.evaluate.outputs(rows)[0] for model in self._models]
        return self.problem.evaluate(split, self.problem.answers(split, self.problem.averaged(split, outputs)))


def _compared(model: FinetunedModel) -> dict[str, dict[str, Any]]:
    """The properties that all models must share, `{what: {part: value}}`."""
    head, vocabulary = model.problem.head, model.tokenizer.vocabulary
    fields = {name: value for name, value in vars(head).items() if name not in _SIZES}
    labels = fields.pop("labels", ())
    columns = len(getattr(model.problem.task, "texts", ()))
    return {
        "task": {"task": model.config.task, "columns of texts": columns, "data.rows": model.config.data.rows},
        "labels": {f"label {number}": label for number, label in enumerate(labels)},
        "head": {"architecture": head.architecture, **fields},
        "vocabulary": {
            **{f"token {number}": token for number, token in enumerate(vocabulary.tokens)},
            # SentencePiece models with the same pieces may split texts differently.
            "fingerprint": vocabulary.fingerprint,
        },
        "tokenizer": model.folder.tokenizer.in_effect(vocabulary),
        "settings of input": vars(model.config.input),
    }


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """The first part in which another model differs, in words; None if there is none."""
    for part in {**one, **other}:
        if part not in one or part not in other or one[part] != other[part]:
            shown = [repr(values[part])[:_SHOWN] if part in values else "none" for values in (other, one)]
            return f"{part} {shown[0]} instead of {shown[1]}"
    return None
