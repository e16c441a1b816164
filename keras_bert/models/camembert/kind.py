"""CamemBERT (Martin et al. 2020): RoBERTa for French, over a SentencePiece vocabulary."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from keras_bert.core.settings import Positive
from keras_bert.models.roberta.kind import Roberta, RobertaConfig


@dataclass
class CamembertConfig(RobertaConfig):
    """The architecture of a CamemBERT (Martin et al. 2020), which is RoBERTa's. The defaults are camembert-base.

    Attributes:
        model_type: the kind of model.
    """

    vocab_size: Positive[int] = 32005
    model_type: Literal["camembert"] = "camembert"  # type: ignore[assignment]


class Camembert(Roberta):
    """CamemBERT. Its tensors have RoBERTa's names."""

    model_type, title, config = "camembert", "CamemBERT", CamembertConfig
    class_prefix = "Camembert"
    json_defaults: ClassVar = {**Roberta.json_defaults, "vocab_size": 30522}


KIND = Camembert()
