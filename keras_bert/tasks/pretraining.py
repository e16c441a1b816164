"""Pretraining, whole: text → vocabulary → shards → training → validation → model folder."""

import dataclasses
import time

import keras
import numpy as np
import tensorflow as tf

from keras_bert import files
from keras_bert.checkpoints.model_folder import write_model_folder
from keras_bert.data.prepare import TRAIN, VALIDATION
from keras_bert.data.reader import ShardReader
from keras_bert.data.shards import ShardSet
from keras_bert.models.fill_mask import fill_masks
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.pretraining_objective import PretrainingObjective
from keras_bert.tasks.phased_batches import PhasedBatches
from keras_bert.tasks.pretraining_data import prepare_run_data, shards_folder
from keras_bert.training.checkpoints import Checkpoints
from keras_bert.training.loop import Loop
from keras_bert.training.metrics import MetricSums, perplexity
from keras_bert.training.metrics_log import MetricsLog
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.progress import Progress
from keras_bert.training.step import Step
from keras_bert.training.strategy import check_divisible, make_strategy

# Of the validation masks and pairs: fixed, so that runs with different seeds are measured on the same questions.
VALIDATION_SEED = 20181011


def pretrain(config, run, report=print):
    """Trains by the recipe in `run`, going on from its newest checkpoint; returns the results written there.

    Args:
        config: a `PretrainConfig`.
        run: the `RunFolder`.
        report: takes one line of text at a time.

    Raises:
        UserError: for whatever in the recipe, the data or the folder cannot be used.
    """
    began = time.perf_counter()
    strategy = make_strategy(config.training.strategy)
    for index, phase in enumerate(config.phases):
        check_divisible(phase.batch_size, strategy, f"phases.{index}.batch_size")
    run.settle(config)
    finished = run.results()
    if finished and finished["steps"] == config.training.steps:
        report(f"{run.path} is finished: {finished['steps']} steps. --steps N goes on, --fresh starts over.")
        return finished

    tokenizer = prepare_run_data(config, run.data, report)
    vocabulary = tokenizer.vocabulary
    train_shards = ShardSet.open(shards_folder(run.data, TRAIN), vocabulary)
    validation_shards = ShardSet.open(shards_folder(run.data, VALIDATION), vocabulary)

    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(config.training.seed)
    with strategy.scope():
        model = BertForPreTraining(
            dataclasses.replace(config.model, vocab_size=len(vocabulary)),
            dtype="mixed_bfloat16" if config.training.precision == "bfloat16" else "float32",
        )
        optimizer = make_optimizer(config.optimizer, config.training.steps)
        optimizer.build(model.trainable_variables)
    report(f"The model has {model.count_params():,} parameters.")

    def distribute(dataset):
        return strategy.experimental_distribute_dataset(dataset)

    def reader(shards, phase, seed, masking):
        return ShardReader(
            shards, vocabulary, phase, config.objective, masking, seed,
            files.join(run.data, "plans"), config.data.shards_per_group,
        )  # fmt: skip

    fixed = dataclasses.replace(config.masking, refresh="never")
    training = [reader(train_shards, phase, config.training.seed, config.masking) for phase in config.phases]
    validation = [reader(validation_shards, phase, VALIDATION_SEED, fixed) for phase in config.phases]
    batches = PhasedBatches(training, [phase.share for phase in config.phases], config.training.steps, distribute)
    objective = PretrainingObjective(vocabulary.mask_id)
    measured = PretrainingObjective(vocabulary.mask_id, _unigram_nats(train_shards))
    evaluation_step = Step(strategy, model, measured)

    def evaluate(done):
        phase = batches.phase(done - 1)
        wanted = -(-config.training.evaluation_examples // config.phases[phase].batch_size)
        dataset = validation[phase].all_batches().take(wanted)
        sums = MetricSums(objective.terms)
        for batch in distribute(dataset):
            sums.add(evaluation_step.evaluate(batch))
        figures = {f"eval_{name}": value for name, value in sums.take().items()}
        return {**figures, "eval_perplexity": perplexity(figures["eval_mlm_loss"])}

    checkpoints = Checkpoints(run.checkpoints, config.training.keep_checkpoints, model=model, optimizer=optimizer)
    first_step = checkpoints.restore_newest(report)
    if first_step:
        report(f"Going on from step {first_step}.")
    settings = config.training
    step = Step(strategy, model, objective, optimizer, config.optimizer.clip_norm, settings.seed, settings.jit_compile)
    log, progress = MetricsLog(run, first_step), Progress(settings.steps, first_step)
    try:
        loop = Loop(step, batches, evaluate, settings, checkpoints, log, progress)
        evaluation = loop.run(first_step) or evaluate(settings.steps)
    finally:
        progress.close()
        log.close()
    write_model_folder(run.model, model, vocabulary, tokenizer.lower_case)
    results = {
        "steps": settings.steps,
        **evaluation,
        "seconds": round(time.perf_counter() - began, 1),
        "examples": [dataclasses.asdict(filling) for filling in fill_masks(model, tokenizer, config.examples)],
    }
    run.write_results(results)
    return run.results()


def _unigram_nats(shards):
    """[vocab] float32: -log p of each token in the training text, every count one higher so that none is infinite."""
    counts = shards.token_counts().astype("float64") + 1.0
    return np.float32(np.log(counts.sum()) - np.log(counts))
