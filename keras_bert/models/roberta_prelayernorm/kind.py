"""RoBERTa with LayerNorm before attention and feed-forward network, as in transformers (Wettig et al. 2023)."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from keras_bert.core.settings import Positive
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.roberta.kind import Roberta, RobertaConfig
from keras_bert.models.sizes import Part
from keras_bert.models.tensor_names import ENCODER, TensorName, layer_norm


@dataclass
class RobertaPreLayerNormConfig(RobertaConfig):
    """The architecture of a RoBERTa-PreLayerNorm. The defaults are those of transformers' class."""

    type_vocab_size: Positive[int] = 2
    layer_norm_eps: Positive[float] = 1e-12
    model_type: Literal["roberta-prelayernorm"] = "roberta-prelayernorm"  # type: ignore[assignment]


# The names of a block's LayerNorms where they differ from RoBERTa's, longest first.
_LAYER_NORMS = {
    ".attention.output.LayerNorm.": ".attention.LayerNorm.",
    ".output.LayerNorm.": ".intermediate.LayerNorm.",
}


class RobertaPreLayerNorm(Roberta):
    """RoBERTa-PreLayerNorm: a pre-norm BERT without next sentences, whose positions begin after the padding's id."""

    model_type, title = "roberta-prelayernorm", "RoBERTa-PreLayerNorm"
    config: ClassVar[type[BertConfig]] = RobertaPreLayerNormConfig
    encoder = "keras_bert.models.roberta_prelayernorm.encoder:RobertaPreLayerNormEncoder"
    class_prefix, stored_prefix = "RobertaPreLayerNorm", "roberta_prelayernorm."
    classification_names: ClassVar = {
        "roberta_prelayernorm.pooler.dense.": "classifier.dense.",
        "classifier.": "classifier.out_proj.",
    }

    def parts(self, config: Any) -> dict[str, list[TensorName]]:
        of_roberta = super().parts(config)
        last = f"{self.stored_prefix}LayerNorm"
        final = layer_norm("encoder.final_layer_norm", last, "bert/encoder/LayerNorm")
        return {**of_roberta, ENCODER: [*map(_renamed, of_roberta[ENCODER]), *final]}

    def encoder_table(self, config: Any) -> list[Part]:
        *parts, pooler = super().encoder_table(config)
        return [*parts, Part("final LayerNorm", "2·H", 2 * config.hidden_size), pooler]


def _renamed(name: TensorName) -> TensorName:
    stored = name.huggingface.name
    for theirs, ours in _LAYER_NORMS.items():
        stored = stored.replace(theirs, ours)
    return dataclasses.replace(name, huggingface=dataclasses.replace(name.huggingface, name=stored))


KINDS = (RobertaPreLayerNorm(),)
