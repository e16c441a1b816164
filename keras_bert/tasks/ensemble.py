"""Several fine-tuned models that answer together, by the mean of their probabilities."""

from collections.abc import Sequence

from keras_bert.errors import UserError
from keras_bert.tasks.evaluation import FinetunedModel
from keras_bert.tasks.problem import Problem


class Ensemble:
    """Scores the mean of several models; a single one is scored as it is.

    Args:
        models: models of the same task with the same labels and vocabulary, which read the same rows.

    Attributes:
        problem: the first model's task, by which all are asked.

    Raises:
        UserError: the models differ in their task, labels or reading, naming the first that does.
    """

    problem: Problem

    def __init__(self, models: Sequence[FinetunedModel]):
        self._models, self.problem = models, models[0].problem
        first = models[0]
        for number, model in enumerate(models[1:], 2):
            for what, one, other in (
                ("task", first.config.task, model.config.task),
                ("labels", first.problem.head, model.problem.head),
                ("vocabulary", first.tokenizer.vocabulary.tokens, model.tokenizer.vocabulary.tokens),
                ("settings of input", first.config.input, model.config.input),
            ):
                if one != other:
                    raise UserError(
                        f"--model: needs models with the same {what}. Received: model {number} with "
                        f"{str(other)[:60]} instead of {str(one)[:60]}."
                    )

    def evaluate(self, split: str) -> dict[str, float]:
        """The scores on a split with labels; of a single model also its objective's figures."""
        if len(self._models) == 1:
            return self._models[0].evaluate(split)
        rows = self.problem.rows(split)
        outputs = [model.evaluate.outputs(rows)[0] for model in self._models]
        return self.problem.evaluate(split, self.problem.answers(split, self.problem.averaged(split, outputs)))
