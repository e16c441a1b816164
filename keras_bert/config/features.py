"""The features that a tagger takes from a frozen BERT (paper, section 5.3 and table 7)."""

from dataclasses import dataclass

from keras_bert.config.checks import require, require_positive
from keras_bert.errors import UserError

EMBEDDINGS, SECOND_TO_LAST, LAST = "embeddings", "second_to_last", "last"
WEIGHTED_LAST4, CONCAT_LAST4, WEIGHTED_ALL = "weighted_last4", "concat_last4", "weighted_all"
FEATURES = (EMBEDDINGS, SECOND_TO_LAST, LAST, WEIGHTED_LAST4, CONCAT_LAST4, WEIGHTED_ALL)
WEIGHTED = (WEIGHTED_LAST4, WEIGHTED_ALL)
TAGGING_TASKS = ("ner", "pos", "tokens")

# In place of what a task's recipe says, which is for a whole BERT that begins trained: this tagger begins at random.
# Its steps from word to word are four times as fast when they are compiled.
FEATURE_TRAINING = {"optimizer.learning_rate": 1e-3, "training.epochs": 10.0, "training.jit_compile": True}


@dataclass
class FeaturesConfig:
    """A tagger over a frozen BERT, in place of fine-tuning it.

    `kind` is one of `FEATURES`; None fine-tunes. `lstm_size` is of each direction of each of the two LSTM layers. The
    features are kept in `folder`, by default `features` beside the run's folder, where runs that need the same share
    them; it may be removed when no run goes on.
    """

    kind: str | None = None
    lstm_size: int = 768
    folder: str | None = None

    def __post_init__(self):
        require(self.kind in (None, *FEATURES), "kind", f"one of {', '.join(FEATURES)}", self.kind)
        require_positive(self, "lstm_size")


def feature_layers(kind, num_hidden_layers):
    """Which of the encoder's `hidden_states` the features are of: list of int, 0 for the embeddings' output.

    Raises:
        UserError: no such features, or a model with too few layers for them.
    """
    if kind not in FEATURES:
        raise UserError(f"features: needs one of {', '.join(FEATURES)}. Received: {kind!r}.")
    fewest = {SECOND_TO_LAST: 2, WEIGHTED_LAST4: 4, CONCAT_LAST4: 4}.get(kind, 1)
    if num_hidden_layers < fewest:
        raise UserError(
            f"Features {kind}: need a model of {fewest} layers or more. Received: one of {num_hidden_layers}. "
            "Take last."
        )
    if kind == EMBEDDINGS:
        return [0]
    if kind == SECOND_TO_LAST:
        return [num_hidden_layers - 1]
    count = {LAST: 1, WEIGHTED_ALL: num_hidden_layers}.get(kind, 4)
    return list(range(num_hidden_layers - count + 1, num_hidden_layers + 1))
