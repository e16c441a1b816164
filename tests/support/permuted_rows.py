"""Which tokens an XLNet predicts and what each sees, in plain Python, after the published data_utils.py."""


def sample_mask(starts, candidates, length, goal, share, draws):
    """`_sample_mask`: the positions of spans; `draws` yields (length of a span, share of its context before it)."""
    chosen, place = set(), 0
    while place < length and len(chosen) < goal:
        size, part = next(draws)
        size = min(size, goal - len(chosen))
        context = round(size / share)
        before = int(part * context)
        begin = place + before
        while begin < length and begin not in starts:
            begin += 1
        end = begin + size
        if begin >= length or end >= length:
            break
        chosen |= candidates & set(range(begin, end))
        place = end + context - before
    return chosen


def local_perm(index, is_masked, is_special):
    """`_local_perm`: bool [i][j], whether token i does not see token j; `index` is the permutation."""
    length = len(index)
    is_context = [not masked and not special for masked, special in zip(is_masked, is_special)]
    rank = [-1 if context else place for context, place in zip(is_context, index)]
    own = [rank[i] if is_masked[i] and not is_special[i] else rank[i] + 1 for i in range(length)]
    return [[own[i] <= rank[j] and not is_context[j] for j in range(length)] for i in range(length)]
