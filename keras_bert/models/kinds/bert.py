"""BERT itself (Devlin et al. 2018)."""

from collections.abc import Collection
from typing import Any, ClassVar

from keras_bert.config.bert import BertConfig
from keras_bert.model_kinds import GoogleFiles, ModelKind


class Bert(ModelKind):
    """BERT: every layer has its own weights, and the embeddings are as wide as the layers."""

    model_type, title, config = "bert", "BERT", BertConfig
    class_prefix, stored_prefix = "Bert", "bert."
    google_files = GoogleFiles("bert_config.json", "bert_model.ckpt")
    pretraining_heads = ("nsp",)
    values_here: ClassVar = {
        "position_embedding_type": ("absolute",),
        "is_decoder": (False, True),
        "add_cross_attention": (False,),
        "is_encoder_decoder": (False,),
        "quantization_config": (),
        "pruned_heads": ({},),
        "auto_map": (),
    }

    def make_encoder(self, config: BertConfig, with_pooler: bool = True, **keras_options: Any) -> Any:
        from keras_bert.models.encoder import BertEncoder

        return BertEncoder(config, with_pooler=with_pooler, **keras_options)

    def parts(self, config: BertConfig) -> dict[str, list[Any]]:
        from keras_bert.models.kinds.bert_names import bert_parts

        return bert_parts(config)

    def encoder_table(self, config: BertConfig) -> list[Any]:
        from keras_bert.models.parameters import bert_encoder_parts

        return bert_encoder_parts(config)

    def heads_table(self, config: BertConfig) -> list[Any]:
        from keras_bert.models.parameters import bert_head_parts

        return bert_head_parts(config)

    def quoted_counts(self, config: BertConfig, exact: int) -> list[tuple[str, int, str]]:
        from keras_bert.models.parameters import quoted_for_bert

        return quoted_for_bert(config, exact)

    def training_flops(
        self, config: BertConfig, sequence_length: int, predictions_per_sequence: int, span_boundary: bool = False
    ) -> int:
        from keras_bert.models.flops import training_flops

        return training_flops(config, sequence_length, predictions_per_sequence, span_boundary)

    def class_in_transformers(self, parts: Collection[str], config: BertConfig) -> str:
        from keras_bert.checkpoints.names import MASKED_LM_HEAD, NEXT_SENTENCE_HEAD

        # It has no place for next sentence prediction.
        if config.is_causal and MASKED_LM_HEAD in parts and not (config.pools_cls and NEXT_SENTENCE_HEAD in parts):
            return "BertLMHeadModel"
        if NEXT_SENTENCE_HEAD in parts:
            return "BertForPreTraining" if MASKED_LM_HEAD in parts else "BertForNextSentencePrediction"
        return "BertForMaskedLM" if MASKED_LM_HEAD in parts else "BertModel"


KIND = Bert()
