"""What recomputing encoder blocks saves: peak memory beside the time of a pretraining step.

    python tools/measure_memory.py [--model base] [--batch 32] [--length 512] [--recompute 0,3,2,1] [--accumulation 1]
                                   [--precision float32] [--jit] [--steps 2] [--lora-rank 0]
                                   [--vocab-size 30522] [--written 128]

Each value of `training.recompute_every` is measured in a process of its own, on random tokens, dropout on: the peak of
the steps after the first, which traces and compiles, and the medians of their seconds. CPU seconds are those of all
cores, and hardly depend on what else the machine does. A model with a decoder predicts `--written` tokens.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MASK_ID = 103
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
    parser.add_argument("--vocab-size", type=int, help="by default the model's")
    parser.add_argument("--written", type=int, help="tokens that a decoder predicts; by default --length")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure is not None:
        print(json.dumps(measured(arguments)))
        return
    print(f"{arguments.model}, {arguments.batch} x {arguments.length}, {arguments.precision}")
    print("| recompute_every | peak | before the steps | seconds per step | CPU seconds per step |")
    print("| --- | --- | --- | --- | --- |")
    for recompute_every in arguments.recompute.split(","):
        result = in_a_process(*sys.argv[1:], "--measure", recompute_every)
        print(
            f"| {recompute_every} | {result['peak'] / 2**30:.2f} GiB | {result['before'] / 2**30:.2f} GiB | "
            f"{result['seconds']:.2f} | {result['cpu_seconds']:.2f} |",
            flush=True,
        )


def in_a_process(*options):
    """What `measured` returns in a new process: the peak of one that measured another setting would stay."""
    command = [sys.executable, os.path.abspath(__file__), *options]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ROOT}
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stderr)
    return json.loads(result.stdout.splitlines()[-1])


def measured(arguments):
    """`{"peak": bytes, "before": bytes with model and optimizer alone, "seconds" and "cpu_seconds": of a step}`."""
    import dataclasses

    import tensorflow as tf

    import keras_bert

    keras_bert.keep_freed_memory()
    from keras_bert.config.training import OptimizerConfig
    from keras_bert.models.bert.config import BertConfig
    from keras_bert.models.encoder_decoder import EncoderDecoder
    from keras_bert.models.kind import kind_of_config
    from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
    from keras_bert.training.loss_scale import LossScale
    from keras_bert.training.memory import peak_memory, reset_peak
    from keras_bert.training.optimizer import make_optimizer
    from keras_bert.training.step import Step

    config = BertConfig.from_file(os.path.join(ROOT, "configs", "models", f"{arguments.model}.yaml"))
    config = dataclasses.replace(config, vocab_size=arguments.vocab_size or config.vocab_size)
    decodes = kind_of_config(config).decodes
    model = (EncoderDecoder if decodes else BertForPreTraining)(config, dtype=POLICIES[arguments.precision])
    model.encoder.recompute_every = arguments.measure
    if arguments.lora_rank:
        model.encoder.enable_lora(arguments.lora_rank)
    optimizer = make_optimizer(OptimizerConfig(), total_steps=10**6)
    optimizer.build(model.trainable_variables)
    step = Step(
        tf.distribute.get_strategy(),
        model,
        PretrainingObjective(MASK_ID, terms=("decoded",)) if decodes else PretrainingObjective(MASK_ID),
        optimizer,
        jit_compile=arguments.jit,
        accumulation=arguments.accumulation,
        loss_scale=LossScale() if arguments.precision == "float16" else None,
    )
    written = (arguments.written or arguments.length) if decodes else 0
    batch = random_batch(config, arguments.batch, arguments.length, written)
    reset_peak()
    before = peak_memory()

    def seconds(number):
        started_at, cpu_started_at = time.perf_counter(), time.process_time()
        step.train(batch, tf.constant(number, tf.int64))["grad_norm"].numpy()
        return time.perf_counter() - started_at, time.process_time() - cpu_started_at

    seconds(0)
    reset_peak()
    wall, cpu = zip(*[seconds(1 + number) for number in range(arguments.steps)])
    medians = {"seconds": statistics.median(wall), "cpu_seconds": statistics.median(cpu)}
    return {"peak": peak_memory(), "before": before, **medians}


def random_batch(config, batch, length, written):
    """A batch of pretraining, without padding, with 15% of the positions masked, or `written` tokens for a decoder."""
    import numpy as np
    import tensorflow as tf

    rng, predictions = np.random.default_rng(0), max(round(0.15 * length), 1)

    def ids(width):
        return rng.integers(1000, config.vocab_size, (batch, width)).astype("int32")

    arrays = {
        "input_word_ids": ids(length),
        "input_mask": np.ones((batch, length), "int32"),
        "input_type_ids": np.zeros((batch, length), "int32"),
        "masked_lm_positions": np.tile(np.arange(predictions, dtype="int32"), (batch, 1)),
        "masked_lm_ids": ids(predictions),
        "masked_lm_weights": np.ones((batch, predictions), "float32"),
        "next_sentence_labels": rng.integers(0, 2, batch).astype("int32"),
        "example_weights": np.ones(batch, "float32"),
    }
    if written:
        arrays |= {"decoder_input_ids": ids(written), "target_ids": ids(written)}
        arrays["target_weights"] = np.ones((batch, written), "float32")
    return {name: tf.constant(value) for name, value in arrays.items()}


if __name__ == "__main__":
    main()
