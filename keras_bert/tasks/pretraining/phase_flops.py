"""The FLOPs of a pretraining run's examples, phase by phase."""

from keras_bert.config.bert import BertConfig
from keras_bert.config.pretraining import NEXT, PretrainConfig
from keras_bert.models.flops import training_flops


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
    predictions = length if objective.tokens == NEXT else phase_config.max_predictions_per_seq
    return training_flops(model or config.model, length, predictions, objective.span_boundary)
