"""How `predict` prints the answers to texts of its command line."""

from collections.abc import Iterable, Sequence

from keras_bert.core.errors import UserError

_MOST = 5


def in_pairs(texts: Sequence[str], needed: str) -> list[tuple[str, str]]:
    """The first two texts, the next two, and so on. Raises `UserError` for one left over, with what is `needed`."""
    if len(texts) % 2:
        raise UserError(f"TEXT: needs {needed}, one after the other. Received: {len(texts)} of them.")
    return list(zip(texts[::2], texts[1::2], strict=True))


def shown(texts: Iterable[str], answers: Iterable[str]) -> list[str]:
    """An example's texts, and its answers below, the first behind an arrow."""
    return [*texts, *(f"  {'→' if number == 0 else ' '} {answer}" for number, answer in enumerate(answers))]


def ranked(probabilities: Iterable[tuple[str, float]]) -> list[str]:
    """The most probable of pairs (answer, probability), best first."""
    best = sorted(probabilities, key=lambda item: -item[1])[:_MOST]
    return [f"{name} {probability:.3f}" for name, probability in best]
