"""The FLOPs of a pretraining run's examples, phase by phase."""

from keras_bert.config.bert import MASKED, BertConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.model_kinds import kind_of_config


def phase_flops(config: PretrainConfig, phase: int, model: BertConfig | None = None) -> int:
    """The FLOPs of the forward and backward pass of one example of a phase.

    Args:
        config: the recipe.
        phase: the phase's number.
        model: the model's config, if its vocabulary differs from the recipe's.
    """
    phase_config = config.phases[phase]
    objective, length = config.phase_objective(phase_config), phase_config.sequence_length
    # Next tokens are predicted at every position; the logits of the few that are not are computed too.
    predictions = phase_config.max_predictions_per_seq if objective.tokens == MASKED else length
    model = model or config.model
    return kind_of_config(model).training_flops(model, length, predictions, objective.span_boundary)
