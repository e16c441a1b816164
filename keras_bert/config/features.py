"""The features that a tagger takes from a frozen BERT (paper, section 5.3 and table 7)."""

from dataclasses import dataclass
from typing import Literal, get_args

from keras_bert.core.errors import UserError
from keras_bert.core.settings import Checked, Positive

Features = Literal["embeddings", "second_to_last", "last", "weighted_last4", "concat_last4", "weighted_all"]
EMBEDDINGS, SECOND_TO_LAST, LAST, WEIGHTED_LAST4, CONCAT_LAST4, WEIGHTED_ALL = FEATURES = get_args(Features)
WEIGHTED = (WEIGHTED_LAST4, WEIGHTED_ALL)
TAGGING_TASKS = ("ner", "pos", "tokens")


@dataclass
class FeaturesConfig(Checked):
    """A tagger over a frozen BERT, instead of fine-tuning.

    Attributes:
        kind: for tagging: instead of fine-tuning, freeze the encoder and train a two-layer BiLSTM on these of its
            hidden states (paper, section 5.3); null fine-tunes.
        lstm_size: units in each direction of each LSTM layer.
        folder: where the features are kept and shared by runs that need them; by default `features` beside the run's
            folder. You may delete it once no run needs it.
    """

    kind: Features | None = None
    lstm_size: Positive[int] = 768
    folder: str | None = None


def feature_layers(kind: str, num_hidden_layers: int) -> list[int]:
    """The indices of the encoder's `hidden_states` that make the features; 0 is the embeddings' output.

    Raises:
        UserError: an unknown kind, or one that needs more layers than the model has.
    """
    if kind not in FEATURES:
        raise UserError(f"features: needs one of {', '.join(FEATURES)}. Received: {kind!r}.")
    fewest = {SECOND_TO_LAST: 2, WEIGHTED_LAST4: 4, CONCAT_LAST4: 4}.get(kind, 1)
    if num_hidden_layers < fewest:
        raise UserError(
            f"Features {kind}: need a model with at least {fewest} layers. Received: one with {num_hidden_layers}. "
            "Use last."
        )
    layers = list(range(num_hidden_layers + 1))
    of_kind = {EMBEDDINGS: layers[:1], SECOND_TO_LAST: layers[-2:-1], LAST: layers[-1:], WEIGHTED_ALL: layers[1:]}
    return of_kind.get(kind, layers[-4:])
