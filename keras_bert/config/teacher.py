"""Learning from another model's answers: a section of a recipe."""

from dataclasses import dataclass

from keras_bert.core.settings import Checked, Positive, Share, require


@dataclass
class TeacherConfig(Checked):
    """A trained model whose answers the task is also learned from (Hinton et al. 2015).

    Attributes:
        model: a model fine-tuned on the same task, to learn from: a run folder, a model folder or hf:NAME.
        weight: the share of the loss that compares answers with the teacher's; the rest is the task's own loss.
        temperature: what logits are divided by before they are compared.
    """

    model: str | None = None
    weight: Share = 0.5
    temperature: Positive[float] = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("weight", "temperature"):
            given, default = getattr(self, name), getattr(type(self), name)
            require(self.model or given == default, name, "teacher.model, the model to learn from", given)
