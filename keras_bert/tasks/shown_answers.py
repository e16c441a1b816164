"""Formats the answers that `predict` prints for texts on its command line."""

from collections.abc import Iterable, Sequence

from keras_bert.core.errors import UserError

_MOST = 5


def in_pairs(texts: Sequence[str], needed: str) -> list[tuple[str, str]]:
    """The texts in consecutive pairs. Raises `UserError`, naming what is `needed`, if one is left over."""
    if len(texts) % 2:
        raise UserError(f"TEXT: needs {needed}, one after the other. Received: {len(texts)} of them.")
    return list(zip(texts[::2], texts[1::2], strict=True))


def shown(texts: Iterable[str], answers: Iterable[str]) -> list[str]:
    """Lines with an example's texts, then its answers, the first with an arrow."""
    return [*texts, *(f"  {'→' if number == 0 else ' '} {answer}" for number, answer in enumerate(answers))]


def ranked(probabilities: Iterable[tuple[str, float]]) -> list[str]:
    """The five most probable of pairs (answer, probability), best first."""
    best = sorted(probabilities, key=lambda item: -item[1])[:_MOST]
    return [f"{name} {probability:.3f}" for name, probability in best]
