"""An ELMo-like model: LSTM language models in both directions over word pieces (Peters et al. 2018)."""

from collections.abc import Collection
from typing import Any

from keras_bert.config.elmo import ElmoConfig
from keras_bert.model_kinds import ModelKind


class Elmo(ModelKind):
    """ELMo over word pieces. Only this package has such models: transformers and Google's BERT do not."""

    model_type, title, config = "elmo", "ELMo", ElmoConfig
    class_prefix, stored_prefix = "Elmo", "elmo."
    in_transformers = attends = False

    def make_encoder(self, config: ElmoConfig, with_pooler: bool = True, **keras_options: Any) -> Any:
        from keras_bert.models.elmo_encoder import ElmoEncoder

        return ElmoEncoder(config, with_pooler=with_pooler, **keras_options)

    def parts(self, config: ElmoConfig) -> dict[str, list[Any]]:
        from keras_bert.models.kinds.elmo_names import elmo_parts

        return elmo_parts(config)

    def encoder_table(self, config: ElmoConfig) -> list[Any]:
        from keras_bert.models.kinds.elmo_sizes import encoder_table

        return encoder_table(config)

    def heads_table(self, config: ElmoConfig) -> list[Any]:
        from keras_bert.models.kinds.elmo_sizes import heads_table

        return heads_table(config)

    def training_flops(
        self, config: ElmoConfig, sequence_length: int, predictions_per_sequence: int, span_boundary: bool = False
    ) -> int:
        from keras_bert.models.kinds.elmo_sizes import training_flops

        return training_flops(config, sequence_length)

    def class_in_transformers(self, parts: Collection[str], config: ElmoConfig) -> str:
        from keras_bert.checkpoints.names import MASKED_LM_HEAD

        return "BertForPreTraining" if MASKED_LM_HEAD in parts else "BertModel"


KIND = Elmo()
