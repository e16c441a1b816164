"""The corruptions of MASS, BART and T5 in plain Python, one text at a time, from the graph's random numbers.

A text is a list of ids. `bits` are an example's numbers from 0 to 2**64, of the stream that the corruption draws from.
"""


def _choose(places, count, bits):
    """The places with the highest scores, ascending."""
    return sorted(sorted(places, key=lambda place: bits[place] >> 1, reverse=True)[:count])


def _below(number, limit):
    return (number & (2**32 - 1)) * limit >> 32


def _share(length, share):
    return max(1, round(length * share))


def mask_tokens(text, bits, share, mask):
    chosen = _choose(range(len(text)), _share(len(text), share), bits)
    return [mask if place in chosen else token for place, token in enumerate(text)]


def delete_tokens(text, bits, share):
    chosen = _choose(range(len(text)), min(_share(len(text), share), len(text) - 1), bits)
    return [token for place, token in enumerate(text) if place not in chosen]


def poisson_length(number, probabilities):
    """The length into whose part of 0 to 1 a number below 2**32 falls."""
    total, below = sum(probabilities), 0.0
    for length, probability in enumerate(probabilities):
        below += probability
        if number < int(below / total * 2**32):
            return length
    raise AssertionError(number)


def span_lengths(count, length_bits, probabilities):
    """The lengths of spans with `count` tokens in all, the last one cut off."""
    lengths = []
    for number in length_bits[:count]:
        left = count - sum(lengths)
        if not left:
            break
        lengths.append(min(left, poisson_length(number >> 32, probabilities)))
    return lengths


def infill_spans(text, length_bits, place_bits, share, probabilities, mask, width):
    lengths = span_lengths(_share(len(text), share), length_bits, probabilities)
    while len(text) - sum(lengths) + len(lengths) > width:
        del lengths[len(lengths) - 1 - lengths[::-1].index(0)]
    slots = len(text) - sum(lengths) + len(lengths)
    chosen, rest, new = _choose(range(slots), len(lengths), place_bits), list(text), []
    for slot in range(slots):
        if slot in chosen:
            del rest[: lengths.pop(0)]
            new.append(mask)
        else:
            new.append(rest.pop(0))
    assert not rest
    return new


def permute_sentences(text, bits, full_stops):
    sentences = [[]]
    for token, following in zip(text, [*text[1:], None]):
        sentences[-1].append(token)
        if token in full_stops and following not in full_stops:
            sentences.append([])
    order = sorted(range(len(sentences)), key=lambda number: bits[number] >> 1)
    return sum((sentences[number] for number in order), [])


def rotate(text, bits):
    first = _below(bits[0], len(text))
    return text[first:] + text[:first]


def mask_fragment(text, start_bits, bits, share, mask, vocab_size):
    """(the text with the fragment masked, the fragment, its start); 80% [MASK], 10% random, 10% as they are."""
    length = _share(len(text), share)
    start = _below(start_bits[0], len(text) - length + 1)
    new = list(text)
    for place in range(start, start + length):
        draw = (bits[place] >> 32) / 2**32
        new[place] = mask if draw < 0.8 else _below(bits[place], vocab_size) if draw < 0.9 else text[place]
    return new, text[start : start + length], start


def _random_segmentation(items, segments, bits):
    """T5's: the lengths of `segments` of `items`, none empty. It shuffles which items begin a segment."""
    first = _choose(range(1, items), segments - 1, bits)
    return [end - start for start, end in zip([0, *first], [*first, items])]


def replace_spans(text, noise_bits, kept_bits, share, span_length, sentinels):
    """T5's `random_spans_noise_mask` and its two functions of sentinels, with a last sentinel at the end."""
    noise = min(max(round(len(text) * share), 1), len(text) - 1)
    spans = min(max(round(noise / span_length), 1), noise, len(text) - noise, len(sentinels) - 1)
    if not spans:
        return list(text), [sentinels[0]]
    noise_lengths = _random_segmentation(noise, spans, noise_bits)
    kept_lengths = _random_segmentation(len(text) - noise, spans, kept_bits)
    read, told, place = [], [], 0
    for number, (kept, hidden) in enumerate(zip(kept_lengths, noise_lengths)):
        read += [*text[place : place + kept], sentinels[number]]
        told += [sentinels[number], *text[place + kept : place + kept + hidden]]
        place += kept + hidden
    return read, [*told, sentinels[spans]]
