"""The architecture of an ALBERT, in the field names of Google's albert_config.json and Hugging Face's config.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from keras_bert.core.settings import Dropout, Positive, require
from keras_bert.models.bert.config import BIDIRECTIONAL, Activation, BertConfig

Sharing = Literal["all", "attention", "ffn", "none"]
ALL, ATTENTION, FFN, NONE = SHARINGS = get_args(Sharing)

# What a JSON file means that does not say: transformers' and Google's defaults, which are those of albert-xxlarge.
_JSON_DEFAULTS = {"hidden_size": 4096, "num_attention_heads": 64, "intermediate_size": 16384}
# The number of groups of the weights that are shared, in JSON files whose `num_hidden_groups` counts the stored ones.
_SHARED_GROUPS = "shared_groups"


@dataclass
class AlbertConfig(BertConfig):
    """The architecture of an ALBERT (Lan et al. 2020, section 3). The defaults are albert-base-v2.

    Attributes:
        model_type: the kind of model.
        embedding_size: width of the word embeddings, which are mapped to `hidden_size`.
        num_hidden_groups: groups of consecutive layers, at most `num_hidden_layers`; those of a group share their
            weights.
        inner_group_num: blocks in a layer, which do not share weights with each other.
        sharing: which weights a group shares: all, those of attention, those of the feed-forward network, or none (the
            paper's table 4).
        classifier_dropout_prob: dropout before the output layer of a task.
    """

    vocab_size: Positive[int] = 30000
    hidden_act: Activation = "gelu_new"
    hidden_dropout_prob: Dropout = 0.0
    attention_probs_dropout_prob: Dropout = 0.0
    model_type: Literal["albert"] = "albert"
    embedding_size: Positive[int] = 128
    num_hidden_groups: Positive[int] = 1
    inner_group_num: Positive[int] = 1
    sharing: Sharing = "all"
    classifier_dropout_prob: Dropout = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.num_hidden_groups <= self.num_hidden_layers,
            "num_hidden_groups",
            f"1 to num_hidden_layers ({self.num_hidden_layers})",
            self.num_hidden_groups,
        )
        require(
            self.attention == BIDIRECTIONAL,
            "attention",
            "bidirectional for an ALBERT; for a left-to-right model, use model_type: bert",
            self.attention,
        )

    @property
    def embedding_width(self) -> int:
        return self.embedding_size

    @property
    def maps_embeddings(self) -> bool:
        return True

    @property
    def num_blocks(self) -> int:
        return self.num_hidden_layers * self.inner_group_num

    @property
    def head_dropout_prob(self) -> float:
        return self.classifier_dropout_prob

    @property
    def attention_groups(self) -> int:
        """How many groups of layers there are by their attention."""
        return self.num_hidden_groups if self.sharing in (ALL, ATTENTION) else self.num_hidden_layers

    @property
    def ffn_groups(self) -> int:
        """How many groups of layers there are by their feed-forward network."""
        return self.num_hidden_groups if self.sharing in (ALL, FFN) else self.num_hidden_layers

    @property
    def stored_groups(self) -> int:
        """How many groups of layers files hold, in which all weights of a group are shared."""
        return max(self.attention_groups, self.ffn_groups)

    def group_of(self, layer: int, groups: int) -> int:
        """The group that a layer belongs to."""
        return int(layer / (self.num_hidden_layers / groups))  # As in transformers, rounding included.

    def to_fields(self) -> dict[str, Any]:
        """The fields for a JSON file, with the groups that files hold."""
        fields = super().to_fields()
        if self.sharing == ALL:
            del fields["sharing"]
            return fields
        return {**fields, "num_hidden_groups": self.stored_groups, _SHARED_GROUPS: self.num_hidden_groups}

    @classmethod
    def from_fields(cls, values: Mapping[str, Any], where: str) -> BertConfig:
        known = {**_JSON_DEFAULTS, **values}
        if _SHARED_GROUPS in known:
            known["num_hidden_groups"] = known[_SHARED_GROUPS]
        known.pop("is_decoder", None)
        return super().from_fields(known, where)

    @classmethod
    def json_fields(cls) -> frozenset[str]:
        return super().json_fields() | {_SHARED_GROUPS}
