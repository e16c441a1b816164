"""ALBERT (Lan et al. 2020): factorized embeddings, shared layers, sentence order prediction."""

import os
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from keras_bert.config.albert import AlbertConfig
from keras_bert.errors import UserError
from keras_bert.model_kinds import GoogleFiles, ModelKind


class Albert(ModelKind):
    """ALBERT. Google's files do not name the kind; `num_hidden_groups` tells it.

    Files hold groups in which all weights are shared. A model whose layers share only a part of them, or none, is
    stored with a group for each layer, and what is shared in each of these: transformers opens it with equal outputs.
    Fields of our own (`sharing`, `shared_groups`) tell what to share again.
    """

    model_type, title, config = "albert", "ALBERT", AlbertConfig
    class_prefix, stored_prefix = "Albert", "albert."
    google_files = GoogleFiles("albert_config.json", "model.ckpt-best")
    pretraining_heads = ("sop",)
    values_here: ClassVar = {
        "position_embedding_type": ("absolute",),
        "is_decoder": (False,),
        "add_cross_attention": (False,),
        "is_encoder_decoder": (False,),
        "quantization_config": (),
        "pruned_heads": ({},),
        "auto_map": (),
        "net_structure_type": (0,),
        "down_scale_factor": (1,),
        "num_memory_blocks": (0,),
        "gap_size": (0,),
    }

    def is_of(self, fields: Mapping[str, Any]) -> bool:
        return super().is_of(fields) or ("model_type" not in fields and "num_hidden_groups" in fields)

    def make_encoder(self, config: AlbertConfig, with_pooler: bool = True, **keras_options: Any) -> Any:
        from keras_bert.models.albert_encoder import AlbertEncoder

        return AlbertEncoder(config, with_pooler=with_pooler, **keras_options)

    def parts(self, config: AlbertConfig) -> dict[str, list[Any]]:
        from keras_bert.models.kinds.albert_names import albert_parts

        return albert_parts(config)

    def encoder_table(self, config: AlbertConfig) -> list[Any]:
        from keras_bert.models.kinds.albert_parameters import encoder_table

        return encoder_table(config)

    def heads_table(self, config: AlbertConfig) -> list[Any]:
        from keras_bert.models.kinds.albert_parameters import heads_table

        return heads_table(config)

    def training_flops(
        self, config: AlbertConfig, sequence_length: int, predictions_per_sequence: int, span_boundary: bool = False
    ) -> int:
        from keras_bert.models.flops import training_flops

        return training_flops(config, sequence_length, predictions_per_sequence, span_boundary)

    def class_in_transformers(self, parts: Collection[str], config: AlbertConfig) -> str:
        from keras_bert.checkpoints.names import MASKED_LM_HEAD, SENTENCE_ORDER_HEAD

        if MASKED_LM_HEAD not in parts:
            return "BertModel"
        return "BertForPreTraining" if SENTENCE_ORDER_HEAD in parts else "BertForMaskedLM"

    def to_google_fields(self, config: AlbertConfig) -> dict[str, Any]:
        if config.hidden_act == "gelu":
            raise UserError(
                "hidden_act: needs gelu_new for Google's format, whose ALBERT computes gelu by tanh. Received: gelu, "
                "the exact form. If Google's code trained the model, write gelu_new into its config.json."
            )
        fields = {key: value for key, value in config.to_fields().items() if key != "model_type"}
        return {**fields, "hidden_act": config.hidden_act.removesuffix("_new")}

    def from_fields(self, fields: Mapping[str, Any], path: str) -> Any:
        if os.path.basename(path) == self.google_files.config and fields.get("hidden_act") == "gelu":
            fields = {**fields, "hidden_act": "gelu_new"}  # modeling.py of google-research/albert, `gelu`.
        return super().from_fields(fields, path)


KIND = Albert()
