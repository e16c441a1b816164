"""The engine of a pretraining run: its model, optimizer and checkpoints, without its data."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert.config.corruption import SENTINELS
from keras_bert.config.objectives import ObjectiveConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.data.batches.corruption.corruption import most_targets, sentinel_ids
from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.models.bert.config import DECODED, MASKED, PERMUTED, REPLACED, BertConfig
from keras_bert.models.electra.kind import ElectraConfig
from keras_bert.models.electra.pretraining import ElectraForPreTraining
from keras_bert.models.encoder_decoder import EncoderDecoder
from keras_bert.models.kind import kind_of_config
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.models.sizes import training_flops, unread_flops
from keras_bert.models.term import term_named
from keras_bert.tasks.pretraining.teacher import PretrainingTeacher
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.training.engine import Engine, make_engine
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.segment_memory import SegmentMemory
from keras_bert.training.step import Memory, Objective
from keras_bert.training.token_weights import TokenWeights


def pretraining_engine(
    config: PretrainConfig,
    run: RunFolder,
    strategy: tf.distribute.Strategy,
    vocabulary: Vocabulary,
    teacher: PretrainingTeacher | None = None,
) -> Engine:
    """A new `Engine` for a recipe, with random weights; see `make_engine`.

    Args:
        run: the run's folder, for the checkpoints.
        vocabulary: the run's vocabulary, which may be smaller than the recipe asks for.
        teacher: the model to learn from; None for none.
    """
    training = config.training
    objective: Objective = make_objective(config, vocabulary)
    if teacher:
        objective = teacher.objective(objective, strategy)
    mapped_size = teacher.mapped_size if teacher else None
    architecture = dataclasses.replace(config.model, vocab_size=len(vocabulary))
    memory_length, adapt_every = config.objective.memory_length, config.objective.adapt_every

    def make_model(dtype: str) -> Any:
        model = new_model(architecture, config.objective, dtype, mapped_size)
        if config.objective.random_positions:
            for layer in model._flatten_layers():
                if isinstance(layer, BertEmbeddings):
                    layer.random_within = max(phase.sequence_length for phase in config.phases)
        return model

    def make_memory() -> Memory:
        if adapt_every:
            return TokenWeights(len(vocabulary), adapt_every)
        rows = max(phase.batch_size for phase in config.phases)
        return SegmentMemory(rows, memory_length, architecture.num_hidden_layers, architecture.hidden_size)

    return make_engine(
        strategy,
        run,
        training,
        training.steps,
        [phase.share for phase in config.phases],
        make_model,
        lambda budget, model: make_optimizer(config.optimizer, training.steps, budget.share, model=model),
        objective,
        config.optimizer.clip_norm,
        make_memory if memory_length or adapt_every else None,
        training.parallel_slices,
    )


def new_model(
    config: BertConfig, objective: ObjectiveConfig, dtype: str = "float32", mapped_size: int | None = None
) -> BertForPreTraining | EncoderDecoder | ElectraForPreTraining:
    """A model with random weights, in which only what the objective trains is trainable.

    `mapped_size` is that of `BertForPreTraining`.
    """
    if objective.tokens == DECODED:
        return EncoderDecoder(config, dtype=dtype)
    if isinstance(config, ElectraConfig):
        return ElectraForPreTraining(config, objective.replacement, dtype=dtype)
    trained = objective.trained
    model = BertForPreTraining(config, terms=objective.terms, mapped_size=mapped_size, dtype=dtype)
    # Weights without a gradient would still be shrunk by weight decay.
    for term in map(term_named, model.terms):
        model.head_of(term).trainable = term in trained
    if model.encoder.pooler is not None:
        model.encoder.pooler.trainable = any(term.pools for term in trained)
    for term in trained:
        term.unfreeze(model)
    return model


def make_objective(
    config: PretrainConfig, vocabulary: Vocabulary, unigram_nats: np.ndarray | None = None
) -> PretrainingObjective:
    """The loss of a recipe; see `PretrainingObjective`."""
    ids = (vocabulary.sep_id, vocabulary.cls_id)
    markers = sentinel_ids(vocabulary) if SENTINELS in config.objective.corruption.kinds else []
    objective = config.objective
    weights = {term.name: term.weight_in(objective) for term in objective.trained}
    return PretrainingObjective(vocabulary.mask_id, unigram_nats, objective.terms, *ids, markers, weights)


def generator_of(config: PretrainConfig, model: BertConfig) -> ElectraConfig | None:
    """The architecture of the generator that is trained with the model; None without one."""
    replacement = config.objective.replacement
    if not isinstance(model, ElectraConfig) or not replacement.has_generator:
        return None
    return model.generator(replacement.generator_size)


def phase_flops(
    config: PretrainConfig, phase: int, model: BertConfig | None = None, teacher: BertConfig | None = None
) -> int:
    """The FLOPs of one example of a phase: its forward and backward pass, and a teacher's forward pass.

    Args:
        model: the model's config, if its vocabulary differs from the recipe's.
        teacher: the teacher's config; None without one.
    """
    phase_config, model = config.phases[phase], model or config.model
    objective, length = config.phase_objective(phase_config), phase_config.sequence_length
    predictions = _predictions(config, phase)
    of_terms = sum(term.flops(model, predictions) for term in objective.trained)
    generator, smaller = 0, generator_of(config, model)
    if smaller:
        read = min(predictions + 1, length)
        generator = training_flops(smaller, length, predictions) - unread_flops(smaller, length, read)
    # The backward pass takes twice as many as the forward pass, one product for each operand; a teacher has none.
    taught = 0
    if teacher:
        taught = _read_flops(config, phase, teacher, 0 if config.teacher.maps_states else predictions) // 3
    return _read_flops(config, phase, model, predictions) + generator + 3 * of_terms + taught


def _read_flops(config: PretrainConfig, phase: int, model: BertConfig, predictions: int) -> int:
    """The `training_flops` of a phase, less the `unread_flops` of tokens that are not among `tokens_read`."""
    length = config.phases[phase].sequence_length
    unread = unread_flops(model, length, tokens_read(config, phase, model))
    return kind_of_config(model).training_flops(model, length, predictions) - unread


def tokens_read(config: PretrainConfig, phase: int, model: BertConfig) -> int:
    """How many tokens' last states a phase's example needs; for others the last block computes only keys and values."""
    phase_config, kind = config.phases[phase], kind_of_config(model)
    trained, length = config.phase_objective(phase_config).trained, phase_config.sequence_length
    reads_states = config.teacher.maps_states or any(term.reads_states for term in trained)
    if reads_states or kind.decodes or not kind.attends:
        return length
    return min(_predictions(config, phase) + 1, length)  # [CLS] too, for the pooler.


def phase_predictions(config: PretrainConfig, phase: int) -> int:
    """How many tokens are predicted in an example of a phase, by all terms of the loss."""
    terms = config.phase_objective(config.phases[phase]).trained
    return sum(term.predicts_vocabulary for term in terms) * _predictions(config, phase)


def _predictions(config: PretrainConfig, phase: int) -> int:
    phase_config = config.phases[phase]
    tokens, length = config.phase_objective(phase_config).tokens, phase_config.sequence_length
    if tokens in (MASKED, PERMUTED, REPLACED):
        return phase_config.max_predictions_per_seq
    # Next tokens are predicted at every position; the few without a prediction have logits too.
    return most_targets(config.objective.corruption, length) if tokens == DECODED else length
