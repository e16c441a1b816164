"""Greedy search, beam search and the shares of draws in plain Python, with which the tests compare the graph."""

import numpy as np
import tensorflow as tf
from scipy.special import log_softmax, softmax


class Table:
    """A model whose logits are a sum for the row, the place and the two tokens before, as in tools/goldens.

    Args:
        of_tokens, of_rows, of_places: float32 [vocab, vocab, vocab], [rows, vocab] and [places, vocab].
    """

    def __init__(self, of_tokens, of_rows, of_places):
        self.rows = len(of_rows)
        self._tables = of_tokens, of_rows, of_places

    @classmethod
    def random(cls, seed, rows=4, vocab=7, places=8):
        rng = np.random.default_rng(seed)
        return cls(
            *(rng.normal(size=shape).astype("float32") for shape in ((vocab,) * 3, (rows, vocab), (places, vocab)))
        )

    def cache(self):
        """Keeps the token before the last, so that beams that are not reordered go wrong."""
        return {"row": tf.range(self.rows), "before": tf.zeros([self.rows], tf.int32)}

    def step(self, ids, place, cache):
        of_tokens, of_rows, of_places = self._tables
        before = tf.where(place == 0, ids, cache["before"])
        logits = tf.gather_nd(of_tokens, tf.stack([before, ids], axis=-1)) + tf.gather(of_rows, cache["row"])
        return logits + tf.gather(of_places, place), {"row": cache["row"], "before": ids}

    def logits(self, row, ids):
        """The logits of the token after `ids`, a list: float32 [vocab]."""
        of_tokens, of_rows, of_places = self._tables
        return of_tokens[ids[-2:][0], ids[-1]] + of_rows[row] + of_places[len(ids) - 1]


def plain_answers(table, row, tokens, settings):
    """`[(score, ids)]` of a row, best first, the token that it starts with left out."""
    find = _greedy if settings.beams == 1 else _search
    answers = find(lambda ids: table.logits(row, ids), tokens, settings)
    return [(score, ids[1:]) for score, ids in answers[: settings.n_best]]


def _greedy(logits_of, tokens, settings):
    score, ids = 0.0, [tokens.start]
    while len(ids) == 1 or not _ends(ids, tokens, settings):
        gained = _gained(logits_of, ids, tokens, settings)
        ids.append(max(gained, key=gained.get))
        score += gained[ids[-1]]
    return [(score, ids)]


def _search(logits_of, tokens, settings):
    beams, answers, count = [(0.0, [tokens.start])], [], settings.beams
    for length in range(1, settings.max_tokens + 1):
        candidates = [
            (score + gained, [*ids, token])
            for score, ids in beams
            for token, gained in _gained(logits_of, ids, tokens, settings).items()
        ]
        candidates = sorted(candidates, reverse=True)[: 2 * count]
        ended = [(score, ids) for score, ids in candidates[:count] if _ends(ids, tokens, settings)]
        answers += [(score / length**settings.length_penalty, ids) for score, ids in ended]
        answers = sorted(answers, reverse=True)[:count]
        beams = [(score, ids) for score, ids in candidates if not _ends(ids, tokens, settings)][:count]
        if len(answers) == count and beams:
            is_never = settings.early_stopping == "never" and settings.length_penalty > 0
            longest = settings.max_tokens if is_never else length
            if settings.early_stopping is True or beams[0][0] / longest**settings.length_penalty <= answers[-1][0]:
                break
    return answers


def _ends(ids, tokens, settings):
    return ids[-1] == tokens.end or len(ids) > settings.max_tokens


def _gained(logits_of, ids, tokens, settings):
    """`{token: its log-probability}` of those that may follow."""
    place = len(ids) - 1
    if place == settings.max_tokens - 1 and settings.last_token is not None:
        return {settings.last_token: 0.0}
    if place == 0 and settings.first_token is not None:
        return {settings.first_token: 0.0}
    gained = dict(enumerate(log_softmax(logits_of(ids).astype("float64"))))
    if place < settings.min_tokens:
        gained.pop(tokens.end)
    size = settings.no_repeat_ngram or len(ids) + 1
    seen = {tuple(ids[begin : begin + size]) for begin in range(len(ids) - size + 1)}
    return {token: value for token, value in gained.items() if (*ids, token)[-size:] not in seen}


def shares_to_draw(logits, temperature, top_k=None, top_p=None):
    """The probability of each token: float64 [vocab]. Logits are not equal."""
    shares = dict(enumerate(softmax(logits / temperature)))
    best = sorted(shares, key=shares.get, reverse=True)[:top_k]
    total, kept = sum(shares[token] for token in best), []
    for token in best:
        kept.append(token)
        if top_p is not None and sum(shares[other] for other in kept) / total >= top_p:
            break
    left = sum(shares[token] for token in kept)
    return np.array([shares[token] / left if token in kept else 0.0 for token in range(len(logits))])
