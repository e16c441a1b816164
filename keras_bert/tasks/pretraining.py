"""Pretraining, whole: text → vocabulary → shards → training → validation → model folder."""

import dataclasses
import time

import keras
import tensorflow as tf

from keras_bert.checkpoints.model_folder import open_model_folder, write_model_folder
from keras_bert.models.fill_mask import fill_masks
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.pretraining_objective import PretrainingObjective
from keras_bert.tasks.phased_batches import PhasedBatches
from keras_bert.tasks.pretraining_readers import open_readers
from keras_bert.training.checkpoints import Checkpoints
from keras_bert.training.loop import Loop
from keras_bert.training.metrics import MetricSums, perplexity
from keras_bert.training.metrics_log import MetricsLog, NoMetricsLog
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.progress import Progress
from keras_bert.training.step import Step
from keras_bert.training.stop_request import StopRequest
from keras_bert.training.strategy import (
    agreement,
    check_divisible,
    describe,
    make_strategy,
    wait_for_all,
    worker_number,
)


def pretrain(config, run, report=print):
    """Trains by the recipe in `run`, going on from its newest checkpoint.

    Returns the results written there; None in a worker that is not the one that writes.

    Args:
        config: a `PretrainConfig`.
        run: the `RunFolder`.
        report: takes one line of text at a time.

    Raises:
        UserError: for whatever in the recipe, the data or the folder cannot be used.
    """
    began = time.perf_counter()
    strategy = make_strategy(config.training.strategy, config.training.devices, config.training.tpu)
    worker = worker_number(strategy)
    chief = worker == 0
    report = report if chief else _say_nothing
    for index, phase in enumerate(config.phases):
        check_divisible(phase.batch_size, strategy, config.training.accumulation, f"phases.{index}.batch_size")
    if chief:
        run.settle(config)
    wait_for_all(strategy)
    finished = run.results()
    if finished and finished["steps"] == config.training.steps:
        report(f"{run.path} is finished: {finished['steps']} steps. --steps N goes on, --fresh starts over.")
        return finished if chief else None

    report(describe(strategy))
    if not chief:  # The chief makes what is not there yet; the others then find it.
        wait_for_all(strategy)
    readers = open_readers(config, run.data, report, worker)
    if chief:
        wait_for_all(strategy)
    tokenizer, vocabulary = readers.tokenizer, readers.tokenizer.vocabulary
    predicts_next = config.objective.pair == "nsp"

    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(config.training.seed)
    with strategy.scope():
        model = BertForPreTraining(
            dataclasses.replace(config.model, vocab_size=len(vocabulary)),
            dtype="mixed_bfloat16" if config.training.precision == "bfloat16" else "float32",
        )
        if not predicts_next:
            # They get no gradient; weight decay would shrink them all the same.
            model.encoder.pooler.trainable = model.nsp_head.trainable = False
        optimizer = make_optimizer(config.optimizer, config.training.steps)
        optimizer.build(model.trainable_variables)
    report(f"The model has {model.count_params():,} parameters.")

    def distribute(dataset):
        return strategy.experimental_distribute_dataset(dataset)

    shares = [phase.share for phase in config.phases]
    batches = PhasedBatches(readers.training, shares, config.training.steps, distribute)
    objective = PretrainingObjective(vocabulary.mask_id, next_sentence=predicts_next)
    measured = PretrainingObjective(vocabulary.mask_id, readers.unigram_nats, predicts_next)
    evaluation_step = Step(strategy, model, measured)

    def evaluate(done):
        phase = batches.phase(done - 1)
        wanted = -(-config.training.evaluation_examples // config.phases[phase].batch_size)
        dataset = readers.validation[phase].all_batches().take(wanted)
        sums = MetricSums(objective.terms)
        for batch in distribute(dataset):
            sums.add(evaluation_step.evaluate(batch))
        figures = {f"eval_{name}": value for name, value in sums.take().items()}
        return {**figures, "eval_perplexity": perplexity(figures["eval_mlm_loss"])}

    settings = config.training
    checkpoints = Checkpoints(
        run.checkpoints, settings.keep_checkpoints, settings.keep_every, chief, model=model, optimizer=optimizer
    )
    first_step = checkpoints.restore_newest(report)
    if first_step:
        report(f"Going on from step {first_step}.")
    elif config.init:
        open_model_folder(config.init).load_into(model)
        report(f"Going on from the weights of {config.init}.")
    step = Step(
        strategy, model, objective, optimizer, config.optimizer.clip_norm,
        settings.seed, settings.jit_compile, settings.accumulation,
    )  # fmt: skip
    log = MetricsLog(run, first_step) if chief else NoMetricsLog()
    progress = Progress(settings.steps, first_step, chief)
    try:
        with StopRequest(settings.max_minutes, agreement(strategy)) as stop:
            loop = Loop(step, batches, evaluate, settings, checkpoints, log, progress, stop)
            evaluation = loop.run(first_step) or evaluate(settings.steps)
    finally:
        progress.close()
        log.close()
    if not chief:
        return None
    write_model_folder(run.model, model, vocabulary, tokenizer.lower_case)
    results = {
        "steps": settings.steps,
        **evaluation,
        "seconds": round(time.perf_counter() - began, 1),
        "examples": [dataclasses.asdict(filling) for filling in fill_masks(model, tokenizer, config.examples)],
    }
    run.write_results(results)
    return run.results()


def _say_nothing(line):
    pass
