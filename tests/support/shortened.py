"""A test's parameters, of which the quick tests take only the first few."""

import pytest


def shortened(values, quick=1):
    """Values of one argument for `pytest.mark.parametrize`; those after the first `quick` make slow tests."""
    values = list(values)
    return [*values[:quick], *(pytest.param(value, marks=pytest.mark.slow) for value in values[quick:])]
