"""The precision that a run computes in, what it is told about it, and the threads of an op."""

import logging

import pytest
import tensorflow as tf

from keras_bert.config.training import RunConfig
from keras_bert.training import processor, profiling
from keras_bert.training.processor import advise, multiplies_bfloat16, share_cores, with_precision
from keras_bert.training.run_folder import RunFolder

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


@pytest.mark.parametrize(
    ("devices", "capability", "has_unit", "expected"),
    [
        ({}, None, True, ("bfloat16", False)),
        ({}, None, False, ("float32", True)),
        ({"GPU": 2}, (8, 0), False, ("bfloat16", True)),
        ({"GPU": 1}, (7, 5), True, ("float32", True)),
        ({"TPU": 1}, None, False, ("bfloat16", True)),
    ],
)
def test_auto_takes_bfloat16_where_the_devices_multiply_it(
    monkeypatch, tmp_path, devices, capability, has_unit, expected
):
    """Elsewhere it takes several times as long as float32, as it does under XLA on CPUs."""
    monkeypatch.setattr(processor, "multiplies_bfloat16", lambda: has_unit)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * devices.get(kind, 0))
    details = {"compute_capability": capability}
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda device: details)
    given = RunConfig(precision="auto", jit_compile=True)
    chosen = with_precision(given, RunFolder(str(tmp_path)))
    assert (chosen.precision, chosen.jit_compile) == expected
    assert with_precision(RunConfig(jit_compile=True), RunFolder(str(tmp_path))) == RunConfig(jit_compile=True)


def test_a_run_that_has_begun_keeps_its_precision(monkeypatch, tmp_path):
    """Another machine would go on with other numbers."""
    run = RunFolder(str(tmp_path))
    monkeypatch.setattr(processor, "multiplies_bfloat16", lambda: True)
    (tmp_path / "checkpoints" / "step-000000001").mkdir(parents=True)
    (tmp_path / "config.yaml").write_text("training: {precision: float32, jit_compile: true}")
    chosen = with_precision(RunConfig(precision="auto"), run)
    assert (chosen.precision, chosen.jit_compile) == ("float32", True)


def test_the_peak_is_that_of_all_cores(monkeypatch):
    """With a thread for each op, a single product would measure one core, and a run would seem twice as efficient."""
    monkeypatch.setattr(profiling, "_SIZES", {"CPU": 64})
    monkeypatch.setattr(profiling, "all_cores", lambda: 8)
    monkeypatch.setattr(tf.config.threading, "get_intra_op_parallelism_threads", lambda: 2)
    counts = []
    monkeypatch.setattr(profiling, "_seconds", lambda products: counts.append(len(products())) or 1.0)
    assert profiling.matmul_peak(tf.distribute.OneDeviceStrategy("CPU:0")) == 4 * 2.0 * 64**3
    assert set(counts) == {4}


def test_parts_side_by_side_share_the_cores(monkeypatch):
    """With all cores for each op, the parts would wait for each other's. In a program, other ops need them."""
    set_to = []
    monkeypatch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", set_to.append)
    monkeypatch.setattr(processor, "all_cores", lambda: 8)
    share_cores(RunConfig(), 2)
    monkeypatch.setattr(processor, "command_line", lambda: "run.py pretrain")
    for parts in (1, 2, 16):
        share_cores(RunConfig(), parts)
    for several in ({"strategy": "mirrored"}, {"devices": ["CPU:0", "CPU:1"]}):
        share_cores(RunConfig(**several), 2)
    assert set_to == [4, 1]
