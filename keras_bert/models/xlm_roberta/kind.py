"""XLM-RoBERTa (Conneau et al. 2020): RoBERTa for a hundred languages, over a SentencePiece vocabulary."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from keras_bert.core.settings import Positive
from keras_bert.models.roberta.kind import Roberta, RobertaConfig


@dataclass
class XlmRobertaConfig(RobertaConfig):
    """The architecture of an XLM-RoBERTa (Conneau et al. 2020), which is RoBERTa's. The defaults are xlm-roberta-base.

    Attributes:
        model_type: the kind of model.
    """

    vocab_size: Positive[int] = 250002
    model_type: Literal["xlm-roberta"] = "xlm-roberta"  # type: ignore[assignment]


class XlmRoberta(Roberta):
    """XLM-RoBERTa. Its tensors have RoBERTa's names."""

    model_type, title, config = "xlm-roberta", "XLM-RoBERTa", XlmRobertaConfig
    class_prefix = "XLMRoberta"
    json_defaults: ClassVar = {**Roberta.json_defaults, "vocab_size": 30522}


KIND = XlmRoberta()
