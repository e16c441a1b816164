"""Peak memory beside the time of a pretraining step: what recomputing encoder blocks saves, what transformers needs.

    python tools/measure_memory.py [--model base] [--batch 32] [--length 512] [--recompute 0,3,2,1] [--accumulation 1]
                                   [--precision float32] [--jit] [--steps 2] [--lora-rank 0] [--vocab-size 30522]
                                   [--predictions 20] [--teacher base [--match states]] [--transformers]

Each value of `training.recompute_every` is measured in a process of its own, on random tokens, dropout on: the peak of
the steps after the first, which traces and compiles, and the medians of their seconds. CPU seconds are those of all
cores, and hardly depend on what else the machine does. Each kind of model is pretrained in its own way, which
benchmark_training.py describes; a teacher has random weights. --transformers measures its class too, as published;
PyTorch makes the optimizer's state in the first step, so it is not counted before the steps.
"""

import argparse
import dataclasses
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time

from random_batches import make_batch, objective_of, predictions_of
from training_contestants import MASK_ID, build_transformers

from keras_bert.config.recipes import find_config
from keras_bert.config.teacher import LOGITS, STATES
from keras_bert.models.bert.config import BertConfig

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TRANSFORMERS = "transformers"
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="base", help="a name in configs/models")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--recompute", default="0,3,2,1", help="values of training.recompute_every")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--precision", choices=POLICIES, default="float32")
    parser.add_argument("--jit", action="store_true", help="compile with XLA")
    parser.add_argument("--steps", type=int, default=2, help="timed steps, after one that is not")
    parser.add_argument("--lora-rank", type=int, default=0, help="train LoRA's additions, not the encoder; 0 for all")
    parser.add_argument("--transformers", action="store_true", help="measure transformers' class too")
    parser.add_argument("--vocab-size", type=int, help="by default the model's")
    parser.add_argument("--predictions", type=int, help="tokens predicted of a row; by default as for the benchmarks")
    parser.add_argument("--teacher", help="learn from this model too, a name in configs/models")
    parser.add_argument("--match", choices=(STATES, LOGITS), default=STATES, help="as teacher.match")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure is not None:
        print(json.dumps(measured(arguments)))
        return
    predictions = arguments.predictions or predictions_of(config_of(arguments, arguments.model), arguments.length)
    print(f"{arguments.model}, {arguments.batch} x {arguments.length}, {arguments.precision}")
    print("| recompute_every | peak | before the steps | seconds per step | CPU seconds per step |")
    print("| --- | --- | --- | --- | --- |")
    for name in arguments.recompute.split(",") + [TRANSFORMERS] * arguments.transformers:
        result = in_a_process(*sys.argv[1:], "--predictions", str(predictions), "--measure", name)
        print(
            f"| {name} | {result['peak'] / 2**30:.2f} GiB | {result['before'] / 2**30:.2f} GiB | "
            f"{result['seconds']:.2f} | {result['cpu_seconds']:.2f} |",
            flush=True,
        )


def in_a_process(*options):
    """What `measured` returns in a new process; in one process, an earlier setting's peak would remain."""
    command = [sys.executable, os.path.abspath(__file__), *options]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ROOT}
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])


def measured(arguments):
    """`{"peak": bytes, "before": bytes with model and optimizer alone, "seconds" and "cpu_seconds": of a step}`."""
    config = config_of(arguments, arguments.model)
    batch = make_batch(config, arguments.batch, arguments.length, arguments.predictions)
    if arguments.measure == TRANSFORMERS:
        step, _ = build_transformers(config, batch, os.cpu_count(), arguments.precision)
        peak, reset = process_peak, lambda: None
    else:
        step = our_step(arguments, config, batch)
        from keras_bert.training.memory import peak_memory as peak
        from keras_bert.training.memory import reset_peak as reset
    reset()
    before = peak()

    def seconds():
        started_at, cpu_started_at = time.perf_counter(), time.process_time()
        step()
        return time.perf_counter() - started_at, time.process_time() - cpu_started_at

    seconds()
    reset()
    wall, cpu = zip(*[seconds() for _ in range(arguments.steps)])
    medians = {"seconds": statistics.median(wall), "cpu_seconds": statistics.median(cpu)}
    return {"peak": peak(), "before": before, **medians}


def process_peak():
    """The peak since the process started. Ours needs TensorFlow, whose libraries are no part of transformers'."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def config_of(arguments, name):
    """The config of a model, with the command line's vocabulary."""
    config = BertConfig.from_file(find_config("models", name))
    return dataclasses.replace(config, vocab_size=arguments.vocab_size or config.vocab_size)


def our_step(arguments, config, batch):
    """A function of one step with the settings of the command line."""
    import tensorflow as tf

    import keras_bert

    keras_bert.keep_freed_memory()
    from keras_bert.config.teacher import PretrainingTeacherConfig
    from keras_bert.config.training import OptimizerConfig
    from keras_bert.models.bert.encoder import BertEncoder
    from keras_bert.models.pretraining import PretrainingObjective
    from keras_bert.tasks.pretraining.engine import new_model
    from keras_bert.tasks.pretraining.teacher import TaughtObjective
    from keras_bert.training.loss_scale import LossScale
    from keras_bert.training.optimizer import make_optimizer
    from keras_bert.training.step import Step

    objective, dtype = objective_of(config), POLICIES[arguments.precision]
    loss, mapped_size = PretrainingObjective(MASK_ID, terms=objective.terms), None
    if arguments.teacher:
        of_teacher = config_of(arguments, arguments.teacher)
        if arguments.match == STATES:
            teacher, mapped_size = BertEncoder(of_teacher, with_pooler=False, dtype=dtype), of_teacher.hidden_size
        else:
            teacher = new_model(of_teacher, objective, dtype)
        teacher.trainable = False
        loss = TaughtObjective(loss, teacher, PretrainingTeacherConfig(arguments.teacher, match=arguments.match))
    model = new_model(config, objective, dtype, mapped_size)
    model.encoder.recompute_every = int(arguments.measure)
    if arguments.lora_rank:
        model.encoder.enable_lora(arguments.lora_rank)
    optimizer = make_optimizer(OptimizerConfig(), total_steps=10**6)
    optimizer.build(model.trainable_variables)
    trained = Step(
        tf.distribute.get_strategy(),
        model,
        loss,
        optimizer,
        jit_compile=arguments.jit,
        accumulation=arguments.accumulation,
        loss_scale=LossScale() if arguments.precision == "float16" else None,
    )
    batch = {name: tf.constant(value) for name, value in batch.items()}
    number = itertools.count()
    return lambda: trained.train(batch, tf.constant(next(number), tf.int64))["grad_norm"].numpy()


if __name__ == "__main__":
    main()
