"""Learning from another model: a section of a recipe."""

import dataclasses
from dataclasses import dataclass
from typing import Literal, get_args

from keras_bert.core.settings import Checked, NotNegative, Positive, Share, require

Match = Literal["states", "logits"]
STATES, LOGITS = get_args(Match)


@dataclass
class TeacherConfig(Checked):
    """A trained model from whose answers a run learns too (Hinton et al. 2015).

    Attributes:
        model: model to learn from, fine-tuned on the same task: a run folder, a model folder or hf:NAME.
        weight: the share of the loss that compares answers with the teacher's; the rest is the task's own loss.
        temperature: what logits are divided by before they are compared.
    """

    model: str | None = None
    weight: Share = 0.5
    temperature: Positive[float] = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in dataclasses.fields(self):
            given = getattr(self, field.name)
            is_used = self.model or given == field.default
            require(is_used, field.name, "teacher.model, the model to learn from", given)


@dataclass
class PretrainingTeacherConfig(TeacherConfig):
    """A frozen model with the same vocabulary, from whose states or predictions masked LM learns too.

    Attributes:
        model: model to learn from, with the same vocabulary: a run folder, a model folder or hf:NAME.
        weight: factor on the distance from the teacher, which is added to the loss; at 0 the teacher is left out.
        temperature: what logits are divided by before they are compared.
        match: what is compared: `states`, the last hidden states, after a dense layer maps the model's own to the
            teacher's, which is dropped afterwards; or `logits`, the predictions of masked tokens.
    """

    weight: NotNegative[float] = 1.0  # type: ignore[assignment]
    match: Match = "states"

    def __post_init__(self) -> None:
        super().__post_init__()
        is_used = self.match == LOGITS or self.temperature == TeacherConfig.temperature
        require(is_used, "temperature", "teacher.match logits, which it divides", self.temperature)

    @property
    def maps_states(self) -> bool:
        """Whether the last states of all tokens are compared with the teacher's."""
        return bool(self.model and self.weight) and self.match == STATES
