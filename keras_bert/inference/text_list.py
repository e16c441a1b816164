"""Refuses a single text where several are needed: a string is a sequence of texts too, of one character each."""

_SHOWN = 40


def require_list(texts: object) -> None:
    """Raises `ValueError` if `texts` is a text."""
    if isinstance(texts, (str, bytes)):
        shown = repr(texts[:_SHOWN]) + ("…" if len(texts) > _SHOWN else "")
        raise ValueError(f"texts: needs a list of texts. Received: the text {shown}. Put it into a list: [text].")
