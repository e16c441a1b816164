"""What a run is told about the precision that it computes in."""

import logging

import pytest
import tensorflow as tf

from keras_bert.config.training import RunConfig
from keras_bert.training import processor
from keras_bert.training.processor import advise, multiplies_bfloat16

OFF = "--set training.jit_compile=false"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx512_bf16 amx_bf16 amx_tile\nbugs\t\t:\n", True),
        ("processor\t: 0\nflags\t\t: fpu avx512f avx512_bf16\nbugs\t\t:\n", True),  # AMD's since Zen 4.
        ("processor\t: 0\nflags\t\t: fpu avx512f\nbugs\t\t: amx_bf16\n", False),
        ("Features\t: fp asimd bf16\n", False),  # ARM, where nothing was measured.
        (None, False),  # Not Linux.
    ],
)
def test_a_processor_that_multiplies_bfloat16_is_found_by_its_flags(tmp_path, text, expected):
    path = tmp_path / "cpuinfo"
    if text is not None:
        path.write_text(text)
    assert multiplies_bfloat16(str(path)) is expected


@pytest.mark.parametrize(
    ("has_unit", "precision", "jit_compile", "expected"),
    [
        (True, "float32", False, "1.3 to 1.9 times as fast: --set training.precision=bfloat16"),
        (True, "float32", True, f"1.3 to 1.9 times as fast: --set training.precision=bfloat16 {OFF}"),
        (True, "bfloat16", True, f"XLA does not multiply in bfloat16, as this processor can. Faster: {OFF}"),
        (True, "bfloat16", "auto", ""),
        (True, "bfloat16", False, ""),
        (False, "float32", True, ""),
        (False, "bfloat16", False, "does not multiply bfloat16 (AMX, AVX-512): float32 is faster."),
    ],
)
def test_a_run_is_told_of_a_faster_precision(monkeypatch, caplog, has_unit, precision, jit_compile, expected):
    """The slower one gives no error, and can take days."""
    monkeypatch.setattr(processor, "multiplies_bfloat16", lambda: has_unit)
    with caplog.at_level(logging.INFO, logger=processor.__name__):
        advise(tf.distribute.OneDeviceStrategy("CPU:0"), RunConfig(precision=precision, jit_compile=jit_compile))
    assert caplog.text.strip().endswith(expected) and bool(caplog.text) is bool(expected)
    caplog.clear()
    advise(tf.distribute.OneDeviceStrategy("GPU:0"), RunConfig(precision=precision, jit_compile=jit_compile))
    assert not caplog.text
