"""Small model folders of every kind that can be exported, with a vocabulary that spells every ASCII text."""

import json
import string

from tiny import random_weights, without_dropout

from keras_bert.checkpoints.model_folder import write_model_folder
from keras_bert.config.classification import MULTI_LABEL, REGRESSION, ClassificationConfig
from keras_bert.models.encoder import BertEncoder
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.sequence_classification import BertForSequenceClassification
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

_LETTERS = string.ascii_lowercase + string.digits
VOCABULARY = Vocabulary(
    [
        *SPECIAL_TOKENS,
        *_LETTERS,
        *(f"##{letter}" for letter in _LETTERS),
        *string.punctuation,
        "the",
        "cat",
        "sat",
        "中",
    ]
)
CLASSIFICATIONS = {
    "single": ClassificationConfig(("no", "maybe", "yes")),
    "pair": ClassificationConfig(("no", "yes")),
    "multi": ClassificationConfig(("a", "b"), MULTI_LABEL),
    "regression": ClassificationConfig(("score",), REGRESSION),
}
KINDS = (*CLASSIFICATIONS, "masked_lm", "encoder")


def write_served(path, kind, **reading):
    """Writes a model folder of one of `KINDS`; `reading` is what config.json says in `keras_bert`."""
    config = without_dropout(vocab_size=len(VOCABULARY), max_position_embeddings=40)
    classification = CLASSIFICATIONS.get(kind)
    if classification:
        model = BertForSequenceClassification(config, classification.num_labels)
    else:
        model = {"masked_lm": BertForPreTraining, "encoder": BertEncoder}[kind](config)
    random_weights(model)
    write_model_folder(str(path), model, VOCABULARY, lower_case=True, head=classification)
    reading = {"pair": True, **reading} if kind == "pair" else reading
    if reading:
        file = path / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "keras_bert": reading}))
    return str(path)
