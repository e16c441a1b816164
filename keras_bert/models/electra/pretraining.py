"""The model for replaced token detection: a discriminator and, unless tokens are replaced without it, a generator."""

import dataclasses
from typing import Any

import keras
from keras import ops

from keras_bert.config.replacement import DISENTANGLED, SHUFFLED, ReplacementConfig
from keras_bert.layers.heads import ReplacedTokenHead
from keras_bert.layers.tensors import Batch, Tensor
from keras_bert.models.albert.encoder import mapped_embeddings_options
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.configured_model import ConfiguredModel
from keras_bert.models.electra.encoder import DiscriminatorEmbeddings, ElectraEncoder
from keras_bert.models.electra.kind import ElectraConfig
from keras_bert.models.kind import with_article
from keras_bert.models.pretraining import BertForPreTraining


@keras.saving.register_keras_serializable(package="keras_bert")
class ElectraForPreTraining(ConfiguredModel):
    """Replaced token detection (Clark et al. 2020, section 2).

    Model folders hold the discriminator: `encoder` and `rtd_head`.

    Args:
        replacement: how to replace tokens; None for a discriminator alone, which reads its input as it is.

    Attributes:
        generator: a small masked LM; None if tokens are replaced without one.

    Call arguments:
        inputs: the encoder's inputs and, for `replacement`, the output of `DynamicMasking`, with `replacement_draws`
            [batch, predictions] float32.

    Returns a dict: `rtd_logits` [batch, seq] float32, above 0 for tokens that look replaced; with
        `replacement` also `is_replaced` [batch, seq] int32; with a generator `mlm_logits` [batch, predictions, vocab]
        float32.

    Example:
        config = keras_bert.ElectraConfig(vocab_size=60, hidden_size=16, num_attention_heads=2, embedding_size=8)
        ids = np.ones((2, 8), "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids, "input_type_ids": ids * 0}
        keras_bert.ElectraForPreTraining(config)(inputs)["rtd_logits"]      # [2, 8]
    """

    config: ElectraConfig

    def __init__(self, config: BertConfig, replacement: ReplacementConfig | None = None, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        if not isinstance(config, ElectraConfig):
            raise ValueError(
                f"ElectraForPreTraining: needs an ElectraConfig. Received: {with_article(type(config).__name__)}."
            )
        self.replacement = replacement
        self.generator, embeddings, policy = None, None, self.dtype_policy
        if replacement and replacement.has_generator:
            self.generator = BertForPreTraining(
                config.generator(replacement.generator_size), dtype=policy, name="generator"
            )
            embeddings = DiscriminatorEmbeddings(
                base=self.generator.encoder.embeddings,
                disentangled=replacement.embeddings == DISENTANGLED,
                **mapped_embeddings_options(config),
                dtype=policy,
            )
        self.encoder = ElectraEncoder(config, with_pooler=False, embeddings=embeddings, dtype=policy, name="encoder")
        self.rtd_head = ReplacedTokenHead(
            config.hidden_size, config.hidden_act, config.initializer_range, dtype=policy, name="rtd_head"
        )
        self.rtd_head.build((None, None, config.hidden_size))
        self.built = True

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        outputs: dict[str, Tensor] = {}
        if self.replacement:
            names = ("replacement_draws", "masked_lm_ids", "masked_lm_weights", "masked_lm_positions")
            self.require_inputs(inputs, "input_word_ids", *names)
            draws, originals = inputs["replacement_draws"], inputs["masked_lm_ids"]
            weights = inputs["masked_lm_weights"]
            if self.generator is not None:
                outputs["mlm_logits"] = self.generator(inputs, training=training)["mlm_logits"]
                replacements = sampled(ops.stop_gradient(outputs["mlm_logits"]), draws)
            elif self.replacement.made_by == SHUFFLED:
                replacements = _shuffled(originals, weights, draws)
            else:
                replacements = ops.cast(ops.floor(draws * self.config.vocab_size), "int32")
            word_ids, outputs["is_replaced"] = _with_replacements(
                inputs["input_word_ids"], inputs["masked_lm_positions"], weights, originals, replacements
            )
            inputs = {**inputs, "input_word_ids": word_ids}
        outputs["rtd_logits"] = self.rtd_head(self.encoder(inputs, training=training)["sequence_output"])
        return outputs

    def get_config(self) -> dict[str, Any]:
        made = self.replacement and dataclasses.asdict(self.replacement)
        return {**super().get_config(), "replacement": made}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "ElectraForPreTraining":
        made = config.get("replacement")
        return super().from_config({**config, "replacement": made and ReplacementConfig(**made)})


# Below, `positions`, `originals` and `replacements` are int32 [batch, predictions], `weights` float32 and 0 for entries
# that are not used, as `DynamicMasking` makes them. `draws` are float32 from [0, 1), one for each prediction, made with
# the batch, so that results do not depend on how a batch is divided.


def sampled(logits: Tensor, draws: Tensor) -> Tensor:
    """Sample a class from each distribution, the first whose cumulative probability exceeds the draw: int32 [...].

    Args:
        logits: float32 [..., classes].
        draws: float32 [...].
    """
    cumulative = ops.cumsum(ops.softmax(logits, axis=-1), axis=-1)
    # Draws are a share of the sum, which after rounding is not always 1.
    below = ops.cast(cumulative <= draws[..., None] * cumulative[..., -1:], "int32")
    return ops.minimum(ops.sum(below, axis=-1), logits.shape[-1] - 1)


def _shuffled(originals: Tensor, weights: Tensor, draws: Tensor) -> Tensor:
    """The predicted tokens of each row in the order of their draws, int32 [batch, predictions]."""
    order = ops.argsort(ops.where(weights > 0, draws, 2.0), axis=-1)  # Unused entries stay behind the others.
    return ops.take_along_axis(originals, ops.cast(order, "int32"), axis=-1)


def _with_replacements(
    word_ids: Tensor, positions: Tensor, weights: Tensor, originals: Tensor, replacements: Tensor
) -> tuple[Tensor, Tensor]:
    """Put the replacements at their positions in the rows.

    Returns: (the rows [batch, seq] int32; [batch, seq] int32, 1 where a replacement differs from the original).
    """
    places = ops.arange(ops.shape(word_ids)[1], dtype="int32")
    is_there = ops.logical_and(ops.equal(positions[:, :, None], places), (weights > 0)[:, :, None])
    put = ops.sum(ops.where(is_there, replacements[:, :, None], 0), axis=1)
    replaced_ids = ops.where(ops.any(is_there, axis=1), put, word_ids)
    differs = ops.not_equal(replacements, originals)[:, :, None]
    return replaced_ids, ops.cast(ops.any(ops.logical_and(is_there, differs), axis=1), "int32")
