"""The implementations that benchmark_training.py compares: each builds its model and gives a function of one step.

A step is forward, backward, clipping by a global norm of 1 and AdamW that spares biases and LayerNorm, with dropout at
the config's rates, on a batch that lies in memory. `build(config, batch, threads)` returns `(step, matmul)`: `step()`
trains once and returns the loss as a number, so the work is done; `matmul(size)` is one square product. Where a call
of `step` trains more than once, `step.steps` says how often.
"""

import functools
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEARNING_RATE, WEIGHT_DECAY, EPSILON, CLIP_NORM = 1e-4, 0.01, 1e-6, 1.0
MASK_ID = 103


def make_batch(config, batch_size, sequence_length, predictions):
    """Random full rows as a `ShardBatches` gives them, in NumPy."""
    rng = np.random.default_rng(0)
    shape = (batch_size, sequence_length)
    positions = np.stack([np.sort(rng.choice(sequence_length, predictions, False)) for _ in range(batch_size)])
    return {
        "input_word_ids": rng.integers(1000, config.vocab_size, shape, "int32"),
        "input_mask": np.ones(shape, "int32"),
        "input_type_ids": np.ones((batch_size, 1), "int32") * (np.arange(sequence_length) >= sequence_length // 2),
        "masked_lm_positions": positions.astype("int32"),
        "masked_lm_ids": rng.integers(1000, config.vocab_size, (batch_size, predictions), "int32"),
        "masked_lm_weights": np.ones((batch_size, predictions), "float32"),
        "next_sentence_labels": rng.integers(0, 2, batch_size, "int32"),
        "example_weights": np.ones(batch_size, "float32"),
    }


def build_ours(config, batch, threads):
    tf = _tensorflow(threads)
    trainer = _our_step(config)
    batch = {name: tf.constant(value) for name, value in batch.items()}
    number = iter(range(10**9))

    def step():
        result = trainer.train(batch, tf.constant(next(number), tf.int64))
        return float(result["sums"]["mlm"]["loss"])

    return step, _tensorflow_matmul(tf)


def build_ours_fed(config, batch, threads, steps_per_loop=1):
    """The same, its batches from a data set, as the training loop has them: so many steps a call."""
    tf = _tensorflow(threads)
    from keras_bert.training.metrics import each_step
    from keras_bert.training.step_loop import taking, trainer

    training = trainer(_our_step(config), steps_per_loop)
    dataset = tf.data.Dataset.from_tensors({name: tf.constant(value) for name, value in batch.items()}).repeat()
    strategy = tf.distribute.get_strategy()
    batches = iter(strategy.experimental_distribute_dataset(dataset.prefetch(4)))
    take = taking(batches, dataset, batch["input_word_ids"].shape[-1:], steps_per_loop)
    number = iter(range(0, 10**9, steps_per_loop))

    def step():
        result = training.train(take(steps_per_loop), tf.constant(next(number), tf.int64))
        return float(each_step(result)[-1]["sums"]["mlm"]["loss"])

    step.steps = steps_per_loop
    return step, _tensorflow_matmul(tf)


def _our_step(config):
    """Our compiled step, to be made after `_tensorflow`."""
    import tensorflow as tf

    from keras_bert.config.training import OptimizerConfig
    from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
    from keras_bert.training.optimizer import make_optimizer
    from keras_bert.training.step import Step

    model = BertForPreTraining(config)
    settings = OptimizerConfig(learning_rate=LEARNING_RATE, weight_decay=WEIGHT_DECAY, epsilon=EPSILON)
    optimizer = make_optimizer(settings, total_steps=10**6)
    optimizer.build(model.trainable_variables)
    strategy = tf.distribute.get_strategy()
    return Step(strategy, model, PretrainingObjective(MASK_ID), optimizer, CLIP_NORM, jit_compile=True)


def build_keras_hub(config, batch, threads):
    """`BertMaskedLM` as `fit` trains it; it has no next sentence head."""
    tf = _tensorflow(threads)
    import keras
    import keras_hub

    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dropout=config.hidden_dropout_prob,
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
    return lambda: float(model.train_function(batches)["loss"]), _tensorflow_matmul(tf)


def build_transformers(config, batch, threads):
    """As it comes: logits over the vocabulary at every position, labels of -100 where nothing is predicted."""
    torch, model = _transformers(config, threads)
    tensors = {name: torch.from_numpy(value).long() for name, value in batch.items()}
    labels = torch.full(tensors["input_word_ids"].shape, -100)
    labels.scatter_(1, tensors["masked_lm_positions"], tensors["masked_lm_ids"])

    def loss():
        return model(
            input_ids=tensors["input_word_ids"],
            attention_mask=tensors["input_mask"],
            token_type_ids=tensors["input_type_ids"],
            labels=labels,
            next_sentence_label=tensors["next_sentence_labels"],
        ).loss

    return _torch_step(torch, model, loss), _torch_matmul(torch)


def build_transformers_gathered(config, batch, threads, compiled=False):
    """The masked positions gathered by hand before the masked LM head."""
    torch, model = _transformers(config, threads)
    tensors = {name: torch.from_numpy(value).long() for name, value in batch.items()}
    rows = torch.arange(len(tensors["input_word_ids"]))[:, None]
    cross_entropy = torch.nn.functional.cross_entropy

    def loss():
        encoded = model.bert(
            input_ids=tensors["input_word_ids"],
            attention_mask=tensors["input_mask"],
            token_type_ids=tensors["input_type_ids"],
        )
        masked = encoded.last_hidden_state[rows, tensors["masked_lm_positions"]]
        logits, next_sentence = model.cls(masked, encoded.pooler_output)
        masked_lm_loss = cross_entropy(logits.flatten(0, 1), tensors["masked_lm_ids"].flatten())
        return masked_lm_loss + cross_entropy(next_sentence, tensors["next_sentence_labels"])

    return _torch_step(torch, model, torch.compile(loss) if compiled else loss), _torch_matmul(torch)


def build_transformers_compiled(config, batch, threads):
    return build_transformers_gathered(config, batch, threads, compiled=True)


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


def _tensorflow(threads):
    os.environ["KERAS_BACKEND"] = "tensorflow"
    from keras_bert.core.runtime import import_tensorflow

    import_tensorflow()
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    return tf


def _tensorflow_matmul(tf):
    compiled = tf.function(tf.matmul, autograph=False, jit_compile=True)
    square = {}

    def matmul(size):
        # By oneDNN and by XLA's own product in turns: the caller takes the best.
        matrix = square.setdefault(size, tf.random.normal((size, size)))
        square["compiled"] = not square.get("compiled")
        return float((compiled if square["compiled"] else tf.matmul)(matrix, matrix)[0, 0])

    return matmul


def _transformers(config, threads):
    import dataclasses

    import torch
    import transformers

    torch.set_num_threads(threads)
    model = transformers.BertForPreTraining(transformers.BertConfig(**dataclasses.asdict(config)))
    return torch, model.train()


def _torch_step(torch, model, loss):
    named = list(model.named_parameters())
    plain = [value for name, value in named if name.endswith("bias") or "LayerNorm" in name]
    decayed = [value for name, value in named if not (name.endswith("bias") or "LayerNorm" in name)]
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, eps=EPSILON, fused=True)

    def step():
        value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(value.detach())

    return step


def _torch_matmul(torch):
    square = {}

    def matmul(size):
        matrix = square.setdefault(size, torch.randn(size, size))
        return float((matrix @ matrix)[0, 0])

    return matmul
