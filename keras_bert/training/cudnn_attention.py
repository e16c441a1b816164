"""cuDNN's fused attention (Dao et al. 2022), for steps that XLA compiles on an NVIDIA GPU.

TensorFlow has no operation for it. Its XLA has the custom calls that `jax.nn.dot_product_attention` compiles to, with
their settings as JSON. The probabilities, [batch, heads, seq, seq], are never in memory: the kernels compute them piece
by piece, and again in the backward pass.

The kernels can drop out probabilities too, but count their random numbers from the start of the process, so that a
resumed run would draw other masks. So attention with dropout is not fused.
"""

import functools
import json
import logging
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla

_log = logging.getLogger(__name__)

_FORWARD, _BACKWARD = "__cudnn$fmhaScaleBiasSoftmax", "__cudnn$fmhaScaleBiasSoftmaxBackward"
_ELEMENT_TYPES = {"bfloat16": "BF16", "float16": "F16"}
_OLDEST_GPU = (8, 0)  # Ampere.
_LARGEST_HEAD = 128
# The dimensions of [batch, heads, seq, head_size] or [batch, heads, seq, seq] that a product contracts, left and right.
_PRODUCTS = {_FORWARD: {"bmm1": (3, 3), "bmm2": (3, 2)}}
_PRODUCTS[_BACKWARD] = {
    "bmm1_grad_gemm1": (2, 2),
    "bmm1_grad_gemm2": (3, 2),
    "bmm2_grad_gemm1": (2, 2),
    "bmm2_grad_gemm2": (3, 3),
}
# How far a trial may be from TensorFlow's own operations, relative to the norm. bfloat16's error is 0.004.
_TOLERANCE = 0.02
_TRIAL = (2, 2, 128)  # Rows, heads, tokens.


def cudnn_attention(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, attention_bias: tf.Tensor) -> tf.Tensor | None:
    """Attention without dropout by cuDNN, or None where its kernels do not compute it; see `layers.in_training`.

    Args:
        query, key, value: [batch, heads, seq, head_size] of static shape, in bfloat16 or float16.
        attention_bias: [batch, 1, 1, seq], for padding; it gets no gradient.
    """
    batch, _, seq, head_size = query.shape
    takes = (
        query.dtype.name in _ELEMENT_TYPES
        and query.shape.is_fully_defined()
        and query.shape == key.shape
        and attention_bias.shape == (batch, 1, 1, seq)
        and seq % 2 == 0
        and head_size % 8 == 0
        and head_size <= _LARGEST_HEAD
    )
    if not takes or not works(query.dtype.name, head_size):
        return None
    return _fused(query, key, value, attention_bias)


@functools.cache
def works(dtype: str, head_size: int) -> bool:
    """Whether this machine's GPU has the kernels and they agree with TensorFlow's own operations on a few numbers.

    If they fail or disagree, the log says so.
    """
    with tf.init_scope():
        gpus = tf.config.list_physical_devices("GPU")
        details = tf.config.experimental.get_device_details(gpus[0]) if gpus else {}
        if details.get("compute_capability", (0, 0)) < _OLDEST_GPU:  # Only NVIDIA's have one.
            return False
        try:
            fused, plain = _trial(_fused, dtype, head_size), _trial(_plain, dtype, head_size)
        except tf.errors.OpError as error:
            _log.info(f"Attention is not fused: cuDNN's kernels failed here, with {str(error).splitlines()[0]}")
            return False
    worst = max(np.linalg.norm(one - other) / np.linalg.norm(other) for one, other in zip(fused, plain, strict=True))
    if not worst <= _TOLERANCE:
        _log.info(f"Attention is not fused: cuDNN's kernels are {worst:.1%} off here.")
    return bool(worst <= _TOLERANCE)


def _trial(attention: Any, dtype: str, head_size: int) -> list[np.ndarray]:
    """The output of an attention function for random numbers, and its gradients, in float32."""
    rows, heads, seq = _TRIAL
    shape = [rows, heads, seq, head_size]
    tensors = [tf.cast(tf.random.stateless_normal(shape, [number, 0]), dtype) for number in range(4)]
    lengths = tf.constant([seq // 2, seq])
    bias = tf.where(tf.sequence_mask(lengths, seq), 0.0, -3e4)[:, None, None]

    @tf.function(jit_compile=True, autograph=False)
    def with_gradients(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, upstream: tf.Tensor) -> list[tf.Tensor]:
        output = attention(query, key, value, bias)
        return [output, *tf.gradients(output, [query, key, value], upstream)]  # In `init_scope` no tape records.

    return [tf.cast(tensor, tf.float32).numpy() for tensor in with_gradients(*tensors)]


def _plain(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, attention_bias: tf.Tensor) -> tf.Tensor:
    """What `_fused` computes, in float32."""
    scores = tf.matmul(*(tf.cast(tensor, tf.float32) for tensor in (query, key)), transpose_b=True)
    probabilities = tf.nn.softmax(scores * query.shape[-1] ** -0.5 + attention_bias)
    return tf.cast(tf.matmul(probabilities, tf.cast(value, tf.float32)), query.dtype)


def _fused(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, attention_bias: tf.Tensor) -> tf.Tensor:
    batch, heads, seq, _ = query.shape
    # With a bias of one row for all queries, the kernels' gradients are wrong (cuDNN 9.19).
    bias = tf.broadcast_to(tf.cast(attention_bias, query.dtype), [batch, 1, seq, seq])
    workspace = tf.TensorSpec([0], tf.uint8)

    @tf.custom_gradient
    def attend(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor) -> tuple[tf.Tensor, Any]:
        output, statistics, _ = xla.custom_call_v2(
            _FORWARD,
            [query, key, value, bias],
            [tf.TensorSpec(query.shape, query.dtype), tf.TensorSpec([batch, heads, seq], tf.float32), workspace],
            backend_config=_settings(query, _FORWARD),
        )

        def gradients(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return xla.custom_call_v2(
                _BACKWARD,
                [query, key, value, statistics, upstream, bias, output],
                [*(tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in (query, key, value)), workspace],
                backend_config=_settings(query, _BACKWARD),
            )[:3]

        return output, gradients

    return attend(query, key, value)


def _settings(query: tf.Tensor, call: str) -> str:
    """A custom call's settings, as in `GpuBackendConfig` of XLA's backend_configs.proto."""
    batch, heads, seq, head_size = query.shape
    products = {
        f"{product}_dot_dimension_numbers": {
            "lhs_contracting_dimensions": [left],
            "rhs_contracting_dimensions": [right],
            "lhs_batch_dimensions": [0, 1],
            "rhs_batch_dimensions": [0, 1],
        }
        for product, (left, right) in _PRODUCTS[call].items()
    }
    settings = {
        "algorithm": {"math_type": "TENSOR_OP_MATH", "tuning_knobs": {"17": "1", "24": "0"}, "is_cudnn_frontend": True},
        "fmha_scale": head_size**-0.5,
        "intermediate_tensor_shape": {
            "element_type": _ELEMENT_TYPES[query.dtype.name],
            "dimensions": [batch, heads, seq, seq],
            "layout": {"minor_to_major": [3, 2, 1, 0]},
            "is_dynamic_dimension": [False] * 4,
        },
        "is_flash_attention": True,
        "mask_type": "NO_MASK",
        "max_seg_per_batch": 1,
        **products,
    }
    return json.dumps({"cudnn_fmha_backend_config": settings})
