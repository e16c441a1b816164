"""The implementations that benchmark_training.py compares: each builds its model and returns a function of one step.

The model is of the config's kind; transformers' class is the one that files of the kind name.

A step is forward, backward, clipping by a global norm of 1 and AdamW that spares biases and LayerNorm, with dropout at
the config's rates, on a batch in memory, on the first GPU if the framework has one.
`build(config, batch, threads, precision)` returns `(step, matmul)`: `step()` trains `step.steps` times and returns the
loss as a number, so the work is done; on a GPU, which Python feeds while it computes, it is read every tenth step.
`matmul()` is one square product in that precision (`float32`, or `bfloat16` with the weights in float32), of matrices
with `matmul.size` rows, which keep the device busy.
"""

import functools
import itertools
import os

import numpy as np
from epochs import autocast
from random_batches import for_transformers, objective_of

from keras_bert.models.kind import kind_of_config

LEARNING_RATE, WEIGHT_DECAY, EPSILON, CLIP_NORM = 1e-4, 0.01, 1e-6, 1.0
MASK_ID = 103
CPU_MATMUL_SIZE, GPU_MATMUL_SIZE = 3072, 8192
GPU_STEPS = 10


def build_ours(config, batch, threads, precision):
    tf = _tensorflow(threads)
    from keras_bert.training.device_integers import widened

    trainer = _our_step(config, precision)
    batch = {name: tf.constant(value) for name, value in batch.items()}
    batch = widened(batch) if _has_gpu(tf) else batch
    number = iter(range(10**9))

    def train():
        return trainer.train(batch, tf.constant(next(number), tf.int64))["sums"][trainer.objective.terms[0]]["loss"]

    return _read_at_times(train, _has_gpu(tf)), _tensorflow_matmul(tf, precision)


def build_ours_fed(config, batch, threads, precision, steps_per_loop=1):
    """The same, its batches from a data set, as in the training loop: `steps_per_loop` steps per call."""
    tf = _tensorflow(threads)
    from keras_bert.training.device_integers import distribute_to_steps
    from keras_bert.training.metrics import each_step
    from keras_bert.training.step_loop import taking, trainer

    trained = _our_step(config, precision)
    training = trainer(trained, steps_per_loop)
    dataset = tf.data.Dataset.from_tensors({name: tf.constant(value) for name, value in batch.items()}).repeat()
    strategy = tf.distribute.get_strategy()
    batches = iter(distribute_to_steps(strategy, dataset.prefetch(4)))
    take = taking(batches, dataset, batch["input_word_ids"].shape[-1:], steps_per_loop)
    number = iter(range(0, 10**9, steps_per_loop))

    def step():
        result = training.train(take(steps_per_loop), tf.constant(next(number), tf.int64))
        return float(each_step(result)[-1]["sums"][trained.objective.terms[0]]["loss"])

    step.steps = steps_per_loop
    return step, _tensorflow_matmul(tf, precision)


def _our_step(config, precision):
    """Our step, to be made after `_tensorflow`. XLA does not multiply in bfloat16 on a CPU that can."""
    import tensorflow as tf

    from keras_bert.config.training import OptimizerConfig
    from keras_bert.models.pretraining import PretrainingObjective
    from keras_bert.tasks.pretraining.engine import new_model
    from keras_bert.training.engine import POLICIES
    from keras_bert.training.optimizer import make_optimizer
    from keras_bert.training.step import Step

    objective = objective_of(config)
    model = new_model(config, objective, POLICIES[precision])
    settings = OptimizerConfig(learning_rate=LEARNING_RATE, weight_decay=WEIGHT_DECAY, epsilon=EPSILON)
    optimizer = make_optimizer(settings, total_steps=10**6)
    optimizer.build(model.trainable_variables)
    strategy = tf.distribute.get_strategy()
    loss = PretrainingObjective(MASK_ID, terms=objective.terms)
    compiles = precision == "float32" or _has_gpu(tf)
    return Step(strategy, model, loss, optimizer, CLIP_NORM, jit_compile=compiles)


def build_keras_hub(config, batch, threads, precision):
    """`BertMaskedLM` as `fit` trains it; it has no next sentence head."""
    tf = _tensorflow(threads)
    import keras
    import keras_hub

    from keras_bert.training.engine import POLICIES

    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dropout=config.hidden_dropout_prob,
        dtype=POLICIES[precision],
        max_sequence_length=config.max_position_embeddings,
    )
    model = keras_hub.models.BertMaskedLM(backbone)
    optimizer = keras.optimizers.AdamW(LEARNING_RATE, WEIGHT_DECAY, epsilon=EPSILON, global_clipnorm=CLIP_NORM)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, jit_compile=True)
    inputs = {
        "token_ids": batch["input_word_ids"],
        "padding_mask": batch["input_mask"],
        "segment_ids": batch["input_type_ids"],
        "mask_positions": batch["masked_lm_positions"],
    }
    data = (inputs, batch["masked_lm_ids"], batch["masked_lm_weights"])
    batches = iter(tf.data.Dataset.from_tensors(tf.nest.map_structure(tf.constant, data)).repeat())
    model.make_train_function()
    step = _read_at_times(lambda: model.train_function(batches)["loss"], _has_gpu(tf))
    return step, _tensorflow_matmul(tf, precision)


def build_transformers(config, batch, threads, precision, compiled=False):
    """As published: for a BERT, logits over the vocabulary at every position, labels of -100 where none is predicted.

    An XLNet and a decoder compute only those of the predictions.
    """
    torch, model, device = _transformers(config, threads)
    tensors = _tensors(torch, for_transformers(config, batch), device)

    def loss():
        with autocast(torch, device, precision):
            return model(**tensors).loss

    return _torch_step(torch, model, torch.compile(loss) if compiled else loss), _torch_matmul(torch, device, precision)


def build_transformers_gathered(config, batch, threads, precision, compiled=False):
    """The masked positions gathered by hand before the masked LM head."""
    torch, model, device = _transformers(config, threads)
    tensors = _tensors(torch, batch, device)
    rows = torch.arange(len(tensors["input_word_ids"]), device=device)[:, None]
    cross_entropy = torch.nn.functional.cross_entropy

    def loss():
        with autocast(torch, device, precision):
            encoded = model.bert(
                input_ids=tensors["input_word_ids"],
                attention_mask=tensors["input_mask"],
                token_type_ids=tensors["input_type_ids"],
            )
            masked = encoded.last_hidden_state[rows, tensors["masked_lm_positions"]]
            logits, next_sentence = model.cls(masked, encoded.pooler_output)
            masked_lm_loss = cross_entropy(logits.flatten(0, 1), tensors["masked_lm_ids"].flatten())
            return masked_lm_loss + cross_entropy(next_sentence, tensors["next_sentence_labels"])

    return _torch_step(torch, model, torch.compile(loss) if compiled else loss), _torch_matmul(torch, device, precision)


def build_transformers_compiled(config, batch, threads, precision):
    build = build_transformers_gathered if _is_bert(config) else build_transformers
    return build(config, batch, threads, precision, compiled=True)


BUILDERS = {
    "transformers-gathered": build_transformers_gathered,
    "ours": build_ours,
    "transformers-compiled": build_transformers_compiled,
    "transformers": build_transformers,
    "keras-hub": build_keras_hub,
    "ours-fed": build_ours_fed,
    "ours-loop10": functools.partial(build_ours_fed, steps_per_loop=10),
    "ours-loop50": functools.partial(build_ours_fed, steps_per_loop=50),
}
PACKAGES = {
    **dict.fromkeys(["ours", "ours-fed", "ours-loop10", "ours-loop50"], ["tensorflow", "keras"]),
    "keras-hub": ["tensorflow", "keras_hub"],
    **dict.fromkeys(["transformers", "transformers-gathered", "transformers-compiled"], ["torch", "transformers"]),
}
BERTS_ONLY = {"transformers-gathered", "keras-hub"}


def takes(name, config):
    """Whether a contestant has a model of the config's kind."""
    kind = kind_of_config(config)
    return _is_bert(config) if name in BERTS_ONLY else kind.in_transformers or not name.startswith("transformers")


def _is_bert(config):
    return kind_of_config(config).model_type == "bert"


def _tensorflow(threads):
    os.environ["KERAS_BACKEND"] = "tensorflow"
    from keras_bert.core.runtime import import_tensorflow

    import_tensorflow()
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    for device in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(device, True)  # The other contestants need some of it.
    return tf


def _has_gpu(tf):
    return bool(tf.config.list_physical_devices("GPU"))


def _read_at_times(train, on_gpu):
    """The function `step`, made from one that trains once and returns a loss that may still be being computed."""

    def step():
        for _ in range(step.steps):
            loss = train()
        return float(loss)

    step.steps = GPU_STEPS if on_gpu else 1
    return step


def _tensorflow_matmul(tf, precision):
    size = GPU_MATMUL_SIZE if _has_gpu(tf) else CPU_MATMUL_SIZE
    matrix = tf.cast(tf.random.normal((size, size)), precision)
    # By XLA's own product and by oneDNN in turns: the caller takes the best.
    products = itertools.cycle([tf.function(tf.matmul, autograph=False, jit_compile=True), tf.matmul])

    def matmul():
        return float(next(products)(matrix, matrix)[0, 0])

    matmul.size = size
    return matmul


def _transformers(config, threads):
    import torch
    import transformers

    torch.set_num_threads(threads)
    kind = kind_of_config(config)
    made = getattr(transformers, kind.class_name(kind.class_in_transformers(kind.parts(config), config)))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch, made(made.config_class(**config.to_fields())).train().to(device), device


def _tensors(torch, arguments, device):
    """Arrays as tensors on the device, their integers 64 bits wide; other values as they are."""
    wide = {name: value.astype("int64") if _has_integers(value) else value for name, value in arguments.items()}
    return {
        name: torch.from_numpy(value).to(device) if isinstance(value, np.ndarray) else value
        for name, value in wide.items()
    }


def _has_integers(value):
    return isinstance(value, np.ndarray) and value.dtype.kind == "i"


def _torch_step(torch, model, loss):
    groups = [{"params": [], "weight_decay": WEIGHT_DECAY}, {"params": [], "weight_decay": 0.0}]
    for name, value in model.named_parameters():
        groups[name.endswith("bias") or "norm" in name.lower()]["params"].append(value)
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, eps=EPSILON, fused=True)

    def train():
        value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return value.detach()

    return _read_at_times(train, next(model.parameters()).is_cuda)


def _torch_matmul(torch, device, precision):
    size = CPU_MATMUL_SIZE if device == "cpu" else GPU_MATMUL_SIZE
    matrix = torch.randn(size, size, device=device, dtype=getattr(torch, precision))

    def matmul():
        return float((matrix @ matrix)[0, 0])

    matmul.size = size
    return matmul
