"""ELECTRA (Clark et al. 2020): a BERT that detects replaced tokens, with embeddings of a width of their own."""

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from keras_bert.core.settings import Positive, require
from keras_bert.models.bert.config import BIDIRECTIONAL, LEARNED, REPLACED, BertConfig
from keras_bert.models.bert.kind import Bert, blocks
from keras_bert.models.sizes import Part, training_flops
from keras_bert.models.tensor_names import (
    ENCODER,
    MASKED_LM_HEAD,
    POOLER,
    REPLACED_TOKEN_HEAD,
    StoredName,
    TensorName,
    dense,
    embeddings,
    layer_norm,
)


@dataclass
class ElectraConfig(BertConfig):
    """The architecture of an ELECTRA (Clark et al. 2020, section 2). The defaults are electra-small-discriminator.

    Attributes:
        model_type: the kind of model.
        embedding_size: width of the embeddings, which are mapped to `hidden_size` if that differs.
    """

    hidden_size: Positive[int] = 256
    num_attention_heads: Positive[int] = 4
    intermediate_size: Positive[int] = 1024
    model_type: Literal["electra"] = "electra"
    embedding_size: Positive[int] = 128
    predicts = REPLACED

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.attention == BIDIRECTIONAL, "attention", "no value for an ELECTRA", self.attention)
        require(self.positions == LEARNED, "positions", "no value for an ELECTRA, which learns them", self.positions)
        require(self.tie_word_embeddings, "tie_word_embeddings", "true for an ELECTRA", self.tie_word_embeddings)

    @property
    def embedding_width(self) -> int:
        return self.embedding_size

    @property
    def maps_embeddings(self) -> bool:
        return self.embedding_size != self.hidden_size

    @classmethod
    def from_bert(cls, config: BertConfig) -> BertConfig:
        """The ELECTRA that computes the same as a BERT.

        Raises:
            UserError: the BERT has a feature that no ELECTRA has.
        """
        own = {"model_type": cls.model_type, "embedding_size": config.hidden_size}
        return cls.from_mapping({**dataclasses.asdict(config), **own}, "model")

    def generator(self, size: float) -> "ElectraConfig":
        """The architecture of a generator with this share of the heads and of all widths but the embeddings'."""
        heads = max(1, round(self.num_attention_heads * size))
        return dataclasses.replace(
            self,
            num_attention_heads=heads,
            hidden_size=heads * max(1, round(self.hidden_size * size / heads)),
            intermediate_size=max(1, round(self.intermediate_size * size)),
        )


_HEAD, _DETECTOR, _DECODER = "generator_predictions", "discriminator_predictions", "generator_lm_head"


class Electra(Bert):
    """ELECTRA. Its files hold a discriminator; one with the head of a masked LM holds a generator."""

    model_type, title = "electra", "ELECTRA"
    config: ClassVar[type[BertConfig]] = ElectraConfig
    encoder = "keras_bert.models.electra.encoder:ElectraEncoder"
    class_prefix, stored_prefix, google_files = "Electra", "electra.", None
    pretraining_heads = ()
    pretrains_pooler = encoder_pools = False
    token_head_act = "gelu"
    # Same as RoBERTa's; `sequence_summary.summary` is the name in transformers' class for multiple choice.
    classification_names: ClassVar = {
        "sequence_summary.summary.": "classifier.dense.",
        "classifier.": "classifier.out_proj.",
    }
    values_here: ClassVar = {
        **Bert.values_here,
        "is_decoder": (False,),
        "tie_word_embeddings": (True,),
        "summary_type": ("first",),
        "summary_use_proj": (True,),
        "summary_activation": ("gelu",),
    }

    def parts(self, config: Any) -> dict[str, list[TensorName]]:
        words, *others = embeddings("electra", config, _DECODER)
        stored = dataclasses.replace(words.huggingface, also=(f"{_DECODER}.weight",))
        mapping = dense("encoder.embeddings.mapping", "electra.embeddings_project")
        return {
            ENCODER: [
                dataclasses.replace(words, huggingface=stored),
                *others,
                *(mapping if config.maps_embeddings else ()),
                *blocks("electra", config),
            ],
            POOLER: [*dense("encoder.pooler.dense", "sequence_summary.summary", "bert/pooler/dense")],
            REPLACED_TOKEN_HEAD: [
                *dense(f"{REPLACED_TOKEN_HEAD}.dense", f"{_DETECTOR}.dense"),
                *dense(f"{REPLACED_TOKEN_HEAD}.output_dense", f"{_DETECTOR}.dense_prediction", f"{_DETECTOR}/dense_1"),
            ],
            MASKED_LM_HEAD: [
                *dense("mlm_head.transform", f"{_HEAD}.dense"),
                *layer_norm("mlm_head.layer_norm", f"{_HEAD}.LayerNorm"),
                TensorName("mlm_head.bias", StoredName(f"{_DECODER}.bias"), StoredName(f"{_HEAD}/output_bias")),
            ],
        }

    def heads_table(self, config: Any) -> list[Part]:
        H = config.hidden_size
        return [Part("replaced token dense", "H² + H", H * H + H), Part("replaced token output", "H + 1", H + 1)]

    def training_flops(self, config: Any, sequence_length: int, predictions_per_sequence: int) -> int:
        """The FLOPs of the discriminator, with 2·S·(H² + H) for its head, at every token."""
        head = 2 * sequence_length * (config.hidden_size**2 + config.hidden_size)
        return training_flops(config, sequence_length, 0) + 3 * head

    def class_in_transformers(self, parts: Collection[str], config: Any) -> str:
        if REPLACED_TOKEN_HEAD in parts:
            return "BertForPreTraining"
        return super().class_in_transformers(parts, config)


KINDS = (Electra(),)
