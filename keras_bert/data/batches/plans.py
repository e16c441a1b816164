"""The plans of a shard set, kept in files: which spans of tokens make up each example.

A plan is an int32 array [examples, 2 * spans + 1]: start and end of each span, half-open, and the label of the pair or,
for packed rows, whether the row continues the document of the row before. An example is [CLS] and its spans, each
followed by [SEP]; an empty span has no [SEP].

Segment pairs, of two spans, are planned after `create_instances_from_document` and `truncate_seq_pair` in Google's
create_pretraining_data.py (paper, appendix A.2). A span truncated at its ends is still a span, so no tokens are copied
before training.
"""

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np

from keras_bert.config.objectives import ObjectiveConfig
from keras_bert.core.array_files import DamagedArrays, read_array, write_array
from keras_bert.core.files import exists, join, make_folder, remove_file
from keras_bert.data.batches.packing import divide_long_sentences, most_documents, plan_packed
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.models.term import RANDOM_NEXT, RELATED, RUNNING_TEXT, SWAPPED

_DRAWS_AT_ONCE = 4000
_LABELS_BALANCED_OVER = 20
_SWAPS_STREAM = 1


def plan_pairs(
    sentences: np.ndarray,
    documents: np.ndarray,
    max_tokens: int,
    entropy: Sequence[int],
    random_next_share: float = 0.5,
    short_sequence_share: float = 0.1,
) -> np.ndarray:
    """Plans one pass over a shard: pairs of segments for next sentence prediction.

    A chunk is a run of whole sentences of one document up to a target length. A is a random prefix of it. B is the rest
    (label 0), or sentences of another document from a random start (label 1); in that case the rest is used again. The
    longer of the two loses tokens at its front or back until both fit in `max_tokens`.

    This differs from the original in four points. The original makes B random whenever a chunk is a single sentence,
    which leaves 46% "next" or fewer. Here such a chunk is split inside its sentence, whatever its label, and a random B
    then starts inside a sentence too, so that the split does not give the label away. Labels are dealt so that every
    stretch of a plan has `random_next_share` of random ones. The short target is drawn per chunk, not per document, so
    that its share also holds in texts with few, long documents. A sentence longer than `max_tokens` is divided first,
    whereas the original drops what does not fit.

    Args:
        sentences: int [sentences + 1], where each sentence starts in the tokens.
        documents: int [documents + 1], where each document starts in the sentences.
        max_tokens: the most tokens of A and B together: the sequence length without [CLS] and two [SEP].
        entropy: non-negative integers that seed everything random here.
        random_next_share: share of label 1. If the shard has a single document to take B from, all labels are 0.
        short_sequence_share: share of chunks whose target is uniform in 2..max_tokens instead of `max_tokens`.

    Returns:
        int32 [examples, 5], in the order of the text. Every span has at least one token. A document, or the rest of
        one, with a single token makes no pair.
    """
    if max_tokens < 2:
        raise ValueError(f"max_tokens: needs at least 2, one for A and one for B. Received: {max_tokens}.")
    rng = np.random.default_rng(np.random.SeedSequence(entropy))
    bounds, documents = divide_long_sentences(sentences, documents, max_tokens)
    if len(documents) == 2:
        random_next_share = 0.0
    draws = _draws(rng, max_tokens, random_next_share, short_sequence_share)
    chunks = np.array(_split_chunks(bounds.tolist(), documents.tolist(), draws), np.int64).reshape(-1, 7)
    a_start, middle, end, target, document, split_inside, is_random = chunks.T
    b_start, b_end = middle.copy(), end.copy()
    rows = np.flatnonzero(is_random)
    wanted = target - (middle - a_start)
    b_start[rows], b_end[rows] = _spans_of_other_documents(
        bounds, documents, document[rows], wanted[rows], split_inside[rows], rng
    )
    spans = _truncate(a_start, middle, b_start, b_end, max_tokens, rng)
    return np.stack([*spans, is_random], axis=1).astype(np.int32)


def plan_swapped(
    sentences: np.ndarray,
    documents: np.ndarray,
    max_tokens: int,
    entropy: Sequence[int],
    short_sequence_share: float = 0.1,
) -> np.ndarray:
    """Plans one pass over a shard: pairs of consecutive segments, half of them swapped (label 1).

    After ALBERT (Lan et al. 2020, section 3.1), except that its code gives a chunk of a single sentence a random B;
    here it is split inside its sentence, as by `plan_pairs`, which has the same arguments and result.
    """
    plan = plan_pairs(sentences, documents, max_tokens, entropy, 0.0, short_sequence_share)
    rng = np.random.default_rng(np.random.SeedSequence((*entropy, _SWAPS_STREAM)))
    plan[:, 4] = _dealt_labels(len(plan), rng)
    return np.where(plan[:, 4:] == 1, plan[:, [2, 3, 0, 1, 4]], plan)


# In a sentence with fewer tokens, a related pair would have hardly anything to compare. The partner is the closest in
# length of this many drawn sentences, so that the length does not give the label away.
_FEWEST_TOKENS, PARTNERS_DRAWN = 12, 4


def related_sizes(max_tokens: int) -> tuple[int, int]:
    """The fewest and the most tokens of a sentence for a related pair, in rows that hold `max_tokens`."""
    most = max_tokens // 2
    return min(_FEWEST_TOKENS, -(-most // 2)), most


def plan_related(
    sentences: np.ndarray, documents: np.ndarray, max_tokens: int, entropy: Sequence[int], related_share: float = 1.0
) -> np.ndarray:
    """Plans one pass over a shard: each sentence with another one of its document, from which to make a related pair.

    Sentences with more tokens than half of `max_tokens` are divided; very short ones, and those that are alone in their
    document, are left out. Half of the labels are 1; arguments and result are those of `plan_pairs`. `related_share` of
    the rows hold a pair; the others hold the text from the sentence on, an empty second span and the label
    `RUNNING_TEXT`.
    """
    rng = np.random.default_rng(np.random.SeedSequence(entropy))
    fewest, most = related_sizes(max_tokens)
    bounds, documents = divide_long_sentences(sentences, documents, most)
    kept = np.flatnonzero(np.diff(bounds) >= fewest)
    firsts = np.searchsorted(kept, documents)
    counts = np.diff(firsts)
    first, count = np.repeat(firsts[:-1], counts), np.repeat(counts, counts)
    own = np.flatnonzero(count > 1)
    first, count = first[own, None], count[own, None]
    others = first + rng.integers(0, count - 1, (len(own), PARTNERS_DRAWN))
    others += others >= own[:, None]
    lengths = np.diff(bounds)[kept]
    nearest = np.argmin(np.abs(lengths[others] - lengths[own, None]), axis=1)
    spans = [bounds[kept[chosen] + end] for chosen in (own, others[np.arange(len(own)), nearest]) for end in (0, 1)]
    plan = np.stack([*spans, _dealt_labels(len(own), rng)], axis=1).astype(np.int32)
    if related_share < 1:
        runs_on = rng.random(len(plan)) >= related_share
        starts, document_ends = plan[runs_on, 0], bounds[documents[1:]]
        ends = document_ends[np.searchsorted(document_ends, starts, side="right")]
        plan[runs_on, 1:4] = np.minimum(starts + max_tokens, ends)[:, None]
        plan[runs_on, 4] = RUNNING_TEXT
    return plan


def _dealt_labels(count: int, rng: np.random.Generator) -> np.ndarray:
    """Alternating labels, shuffled in short stretches: any part of a plan has half of each to within a few rows."""
    rows = -(-count // _LABELS_BALANCED_OVER)
    labels = np.arange(rows * _LABELS_BALANCED_OVER).reshape(rows, _LABELS_BALANCED_OVER) % 2
    return rng.permuted(labels, axis=1).ravel()[:count]


def repeat_to_count(plan: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` shuffled rows of the plan: the first ones if it has more, repeated if it has fewer."""
    return plan[np.resize(rng.permutation(len(plan)), count)]


def _draws(
    rng: np.random.Generator, max_tokens: int, random_next_share: float, short_sequence_share: float
) -> Iterator[tuple[int, float, int]]:
    """Yields (target, position of the split from 0 to 1, whether B is random) forever, drawing many at once for speed.

    Labels are spread evenly and shuffled in short stretches, so that any prefix has the share to within a few rows.
    """
    while True:
        is_short = rng.random(_DRAWS_AT_ONCE) < short_sequence_share
        targets = np.where(is_short, rng.integers(2, max_tokens + 1, _DRAWS_AT_ONCE), max_tokens)
        dealt = np.floor(np.arange(_DRAWS_AT_ONCE + 1) * random_next_share + rng.random())
        labels = rng.permuted(np.diff(dealt).astype(int).reshape(-1, _LABELS_BALANCED_OVER), axis=1).ravel()
        yield from zip(targets.tolist(), rng.random(_DRAWS_AT_ONCE).tolist(), labels.tolist())


def _split_chunks(bounds: list[int], documents: list[int], draws: Iterator[tuple[int, float, int]]) -> list[int]:
    """(a_start, middle, end, target, document, split_inside, is_random) of all chunks, in one flat list."""
    chunks: list[int] = []
    for document in range(len(documents) - 1):
        sentence, last = documents[document], documents[document + 1]
        start, document_end = bounds[sentence], bounds[last]
        while document_end - start >= 2:
            target, place, is_random = next(draws)
            stop = bisect_left(bounds, start + target, sentence + 1, last)
            end = bounds[stop]
            split_inside = stop - sentence == 1
            if split_inside:
                middle_sentence = sentence
                middle = start + 1 + int(place * (end - start - 1))
            else:
                middle_sentence = sentence + 1 + int(place * (stop - sentence - 1))
                middle = bounds[middle_sentence]
            chunks.extend((start, middle, end, target, document, split_inside, is_random))
            # Reusing the rest of a document's last sentence would only make shorter and shorter pairs.
            goes_back = is_random and not (split_inside and stop == last)
            sentence, start = (middle_sentence, middle) if goes_back else (stop, end)
    return chunks


def _spans_of_other_documents(
    bounds: np.ndarray,
    documents: np.ndarray,
    own: np.ndarray,
    wanted: np.ndarray,
    split_inside: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """For each row a span in a document other than `own`, of at least `wanted` tokens unless the document ends."""
    other = rng.integers(0, max(len(documents) - 2, 1), len(own))
    other += other >= own
    first, last = documents[other], documents[other + 1]
    sentence = rng.integers(first, last)
    length = bounds[sentence + 1] - bounds[sentence]
    inside = np.minimum(1 + (rng.random(len(own)) * (length - 1)).astype(np.int64), length - 1)
    start = bounds[sentence] + np.where(split_inside, inside, 0)
    return start, bounds[np.minimum(np.searchsorted(bounds, start + np.maximum(wanted, 1)), last)]


def _truncate(
    a_start: np.ndarray,
    a_end: np.ndarray,
    b_start: np.ndarray,
    b_end: np.ndarray,
    max_tokens: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The result of the original's token-by-token loop, which shortens the longer span, or B if they are equal."""
    a_length, b_length = a_end - a_start, b_end - b_start
    a_kept = np.minimum(a_length, np.maximum(max_tokens - b_length, (max_tokens + 1) // 2))
    b_kept = np.minimum(b_length, np.maximum(max_tokens - a_length, max_tokens // 2))
    a_start = a_start + rng.binomial(a_length - a_kept, 0.5)
    b_start = b_start + rng.binomial(b_length - b_kept, 0.5)
    return a_start, a_start + a_kept, b_start, b_start + b_kept


SPECIAL_TOKENS_OF_A_PAIR = 3  # [CLS] A [SEP] B [SEP]
_PAIRS_STREAM, _REPEAT_STREAM = 1, 2


class Plans:
    """The plans of a shard set for one sequence length and seed, each in a file that is created when first needed.

    Pairs are planned again for every epoch, with as many examples per shard as in epoch 0; packed rows are the same in
    every epoch. The files can be deleted at any time; they are recreated with the same content.

    Attributes:
        columns: columns of every plan.
        spans_used: the most spans of an example in epoch 0. All further spans are empty in every plan, because pairs
            have two and packed rows are the same in every epoch.
        counts: the number of examples of each shard.
        padding_share: share of padding in the positions of epoch 0.
        next_share: share of the examples of epoch 0 with label 0, such as "next".

    Args:
        objective: whether to plan pairs or packed rows, and how.
    """

    def __init__(self, folder: str, shards: ShardSet, sequence_length: int, objective: ObjectiveConfig, seed: int):
        self._folder = folder
        self._shards = shards
        self._sequence_length = sequence_length
        self._objective = objective
        self._seed = seed
        self._pairing = objective.pairing
        self._spans = 2 if self._pairing else most_documents(objective.packing, sequence_length)
        self.columns = 2 * self._spans + 1
        make_folder(folder)
        self.counts: list[int] = []
        self.spans_used, filled, first_labels = 1, 0, 0
        for shard in range(len(shards.names)):
            plan = self._prepare(shard, 0, None)
            self.counts.append(len(plan))
            spans = np.count_nonzero(plan[:, 1:-1:2] > plan[:, :-1:2], axis=1)
            self.spans_used = max(self.spans_used, int(spans.max(initial=1)))
            filled += int(_places(plan).sum())
            first_labels += int(np.count_nonzero(plan[:, -1] == 0))
        examples = max(sum(self.counts), 1)
        self.padding_share = 1.0 - filled / (examples * sequence_length)
        self.next_share = first_labels / examples

    def path(self, shard: int, epoch: int) -> str:
        """The file of shard number `shard`; its name depends on everything that the plan is made from."""
        description = self._shards.meta["shards"][shard]
        objective = self._objective
        made_from = [description["sha256"]["sentences"], description["sha256"]["documents"]]
        if self._pairing == RANDOM_NEXT:
            kind = f"pairs-seed{self._seed}-epoch{epoch}"
            made_from += [objective.random_next_share, objective.short_sequence_share]
        elif self._pairing == SWAPPED:
            kind = f"swapped-seed{self._seed}-epoch{epoch}"
            made_from += [objective.short_sequence_share]
        elif self._pairing == RELATED:
            kind = f"related-seed{self._seed}-epoch{epoch}"
            made_from += [objective.related_share] if objective.related_share < 1 else []
        else:
            kind = f"rows-{objective.packing}"
        fingerprint = hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:12]
        return join(self._folder, f"{description['name']}-{kind}-length{self._sequence_length}-{fingerprint}.npy")

    def prepare(self, epoch: int) -> None:
        """Creates the files of an epoch that are missing or damaged."""
        for shard, count in enumerate(self.counts):
            self._prepare(shard, epoch, count)

    def remove(self, epoch: int) -> None:
        """Deletes the files of an epoch, but not those of epoch 0, which every start of a run needs."""
        for shard in range(len(self.counts)):
            if self.path(shard, epoch) != self.path(shard, 0):
                remove_file(self.path(shard, epoch))

    def _prepare(self, shard: int, epoch: int, count: int | None) -> np.ndarray:
        path = self.path(shard, epoch)
        plan = self._read(path, count, self._shards.meta["shards"][shard]["tokens"])
        if plan is not None:
            return plan
        _, sentences, documents = self._shards.read(self._shards.names[shard])
        if self._pairing:
            plan = self._plan_pairs(sentences, documents, shard, epoch, count)
        else:
            fills = self._objective.packing == "filled"
            plan = plan_packed(sentences, documents, self._sequence_length, self._spans, fills)
        write_array(path, plan)
        return plan

    def _plan_pairs(
        self, sentences: np.ndarray, documents: np.ndarray, shard: int, epoch: int, count: int | None
    ) -> np.ndarray:
        max_tokens = self._sequence_length - SPECIAL_TOKENS_OF_A_PAIR
        entropy = (self._seed, _PAIRS_STREAM, epoch, shard, max_tokens)
        if self._pairing == SWAPPED:
            plan = plan_swapped(sentences, documents, max_tokens, entropy, self._objective.short_sequence_share)
        elif self._pairing == RELATED:
            plan = plan_related(sentences, documents, max_tokens, entropy, self._objective.related_share)
        else:
            shares = (self._objective.random_next_share, self._objective.short_sequence_share)
            plan = plan_pairs(sentences, documents, max_tokens, entropy, *shares)
        if epoch > 0 and count:
            repeat_entropy = (self._seed, _REPEAT_STREAM, epoch, shard, max_tokens)
            plan = repeat_to_count(plan, count, np.random.default_rng(np.random.SeedSequence(repeat_entropy)))
        return plan

    def _read(self, path: str, count: int | None, tokens: int) -> np.ndarray | None:
        """The plan in a file, or None if it is missing or not a valid plan for a shard of that many tokens."""
        if not exists(path):
            return None
        try:
            plan = read_array(path)
        except DamagedArrays:
            return None
        if plan.dtype != np.dtype("<i4") or plan.ndim != 2 or plan.shape[1] != self.columns:
            return None
        starts, ends, labels = plan[:, :-1:2], plan[:, 1:-1:2], plan[:, -1]
        is_plan = (
            plan.flags.c_contiguous
            and (count is None or len(plan) == count)
            and np.all((0 <= starts) & (starts <= ends) & (ends <= tokens))
            and np.all(starts[:, 0] < ends[:, 0])
            and np.all(_places(plan) <= self._sequence_length)
            and np.all((labels >= 0) & (labels <= (RUNNING_TEXT if self._objective.related_share < 1 else 1)))
        )
        return plan if is_plan else None


def _places(plan: np.ndarray) -> np.ndarray:
    """How many positions of a row each example fills, with [CLS] and every [SEP]: int64 [examples]."""
    lengths = plan[:, 1:-1:2].astype(np.int64) - plan[:, :-1:2]
    return 1 + (lengths + (lengths > 0)).sum(axis=1)
