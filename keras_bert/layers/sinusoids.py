"""Positions as waves of many lengths (Vaswani et al. 2017, section 3.5)."""

import numpy as np

_LONGEST_WAVE = 10_000.0


def sinusoids(positions: int, width: int) -> np.ndarray:
    """[positions, width] float32: sines in even columns, cosines in odd ones."""
    waves = _LONGEST_WAVE ** (-np.arange(0, width, 2) / width)
    angles = np.arange(positions)[:, None] * waves
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(positions, -1)[:, :width].astype(np.float32)


def scaled_sinusoids(positions: int, width: int, deviation: float) -> np.ndarray:
    """`sinusoids` with the standard deviation of the other embeddings, beside which they would be far too large."""
    return sinusoids(positions, width) * (deviation / np.sqrt(0.5))
