"""The pairs of `data.batches.related_texts` in plain Python, one row at a time, from the graph's random numbers.

A text is a list of words, a word a tuple of ids. `single`, `dropped`, … are an example's numbers from 0 to 2**64, of
the streams that the pairs draw from.
"""

from tests.support.plain_corruptions import _below, _choose

UNIT = 2**32


def _share(number, most=1.0):
    return (number >> 32) * round(most * 2**16) >> 16


def _is_in(number, share):
    return number >> 32 < round(share * UNIT)


def swapped(sentence, other, has_letters, count_number, place_bits, word_bits):
    """The sentence with other words, or None if there are too few of them."""
    own = [place for place, word in enumerate(sentence) if has_letters(word) and word not in other]
    pool = [word for word in other if has_letters(word) and word not in sentence]
    if len(own) < 3 or len(pool) < 2:
        return None
    share = round(0.3 * UNIT) + _share(count_number, 0.3)
    chosen = _choose(own, max(2, len(own) * share + UNIT // 2 >> 32), place_bits)
    return [pool[_below(word_bits[at], len(pool))] if at in chosen else word for at, word in enumerate(sentence)]


def disturbed(text, other, single, dropped, order):
    drops, turn, turned, disorder, extension, new, new_first, new_place = single
    kept = [word for word, bits in zip(text, dropped) if bits >> 32 >= _share(drops, 0.35)]
    text = kept or text
    if _is_in(turn, 0.35) and len(text) >= 7:
        first = 2 + _below(turned, len(text) - 4)
        text = text[first:] + text[:first]
    if _is_in(disorder, 0.4):
        text = [text[at] for at in sorted(range(len(text)), key=lambda at: at * UNIT + _share(order[at], 3))]
    if _is_in(extension, 0.5):
        count = 1 + _below(new, min(5, len(other)))
        first, place = _below(new_first, len(other) - count + 1), _below(new_place, len(text) + 1)
        text = text[:place] + other[first : first + count] + text[place:]
    return text


def pair(sentence, other, label, has_letters, most, single, dropped, order, *swaps):
    """Both texts, cut to `most` tokens each."""
    kind, sides, half, exchanged, *disturbances, count, count_too = single
    once = swapped(sentence, other, has_letters, count, *swaps[:2])
    twice = swapped(sentence, other, has_letters, count_too, *swaps[2:])
    intact = _is_in(sides, 0.4)
    first = sentence if intact or once is None else once
    if not label:
        second = first
    elif _is_in(kind, 0.2):
        first, second = sentence, other
    elif _is_in(kind, 0.4) or once is None:
        texts = [other, sentence] if _is_in(half, 0.5) else [sentence, other]
        first, second = sentence, texts[0][: len(texts[0]) // 2] + texts[1][len(texts[1]) // 2 :]
    else:
        second = once if intact else sentence if _is_in(sides, 0.8) else twice
    # As wide as the widest sentence: what goes beyond is cut at once.
    second = disturbed(second, other, disturbances, dropped, order)[:most]
    return [_cut(text, most) for text in ((second, first) if _is_in(exchanged, 0.5) else (first, second))]


def _cut(text, most):
    while sum(map(len, text)) > most:
        text = text[:-1]
    return text
