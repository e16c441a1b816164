"""What a run measures by the clock, in its figures and results; no other run repeats it."""

from keras_bert.training.goodput import PARTS

CLOCKED = {"cpu_seconds", "examples_per_second", "tokens_per_second", "data_wait_fraction", "flops_utilization"}
CLOCKED |= {*PARTS, "goodput"}


def without_clock(figures):
    return {name: value for name, value in figures.items() if name not in CLOCKED}
