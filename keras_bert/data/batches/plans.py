"""The plans of a shard set, kept in files: which spans of tokens make up each example.

A plan is an int32 array [examples, 2 * spans + 1]: start and end of each span, half-open, and the label of the pair.
An example is [CLS] and its spans, each followed by [SEP]; an empty span has no [SEP].
"""

import hashlib
import io
import json

import numpy as np

from keras_bert.config.objectives import ObjectiveConfig
from keras_bert.data.batches.packing import most_documents, plan_packed
from keras_bert.data.batches.pairs import plan_pairs, plan_swapped, repeat_to_count
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.files import exists, join, make_folder, open_file, remove_file
from keras_bert.whole_files import atomic_write

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
        next_share: share of the examples of epoch 0 with label 0, "next".

    Args:
        folder: where the files are kept.
        shards: the shards to plan for.
        sequence_length: length of the rows.
        objective: whether to plan pairs or packed rows, and how.
        seed: at least 0.
    """

    columns: int
    spans_used: int
    counts: list[int]
    padding_share: float
    next_share: float

    def __init__(self, folder: str, shards: ShardSet, sequence_length: int, objective: ObjectiveConfig, seed: int):
        self._folder = folder
        self._shards = shards
        self._sequence_length = sequence_length
        self._objective = objective
        self._seed = seed
        self._has_pairs = objective.pair != "none"
        self._spans = 2 if self._has_pairs else most_documents(objective.packing, sequence_length)
        self.columns = 2 * self._spans + 1
        make_folder(folder)
        self.counts, self.spans_used, filled, labels = [], 1, 0, 0
        for shard in range(len(shards.names)):
            plan = self._prepare(shard, 0, None)
            self.counts.append(len(plan))
            self.spans_used = max(self.spans_used, int(_spans_used(plan).max(initial=1)))
            filled += int(_places(plan).sum())
            labels += int(plan[:, -1].sum())
        examples = max(sum(self.counts), 1)
        self.padding_share = 1.0 - filled / (examples * sequence_length)
        self.next_share = 1.0 - labels / examples

    def path(self, shard: int, epoch: int) -> str:
        """The file of shard number `shard`; its name depends on everything that the plan is made from."""
        description = self._shards.meta["shards"][shard]
        objective = self._objective
        made_from = [description["sha256"]["sentences"], description["sha256"]["documents"]]
        if objective.pair == "nsp":
            kind = f"pairs-seed{self._seed}-epoch{epoch}"
            made_from += [objective.random_next_share, objective.short_sequence_share]
        elif objective.pair == "sop":
            kind = f"swapped-seed{self._seed}-epoch{epoch}"
            made_from += [objective.short_sequence_share]
        else:
            kind = f"packed-{objective.packing}"
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
        if self._has_pairs:
            plan = self._plan_pairs(sentences, documents, shard, epoch, count)
        else:
            fills = self._objective.packing == "filled"
            plan = plan_packed(sentences, documents, self._sequence_length, self._spans, fills)
        with atomic_write(path, "wb") as stream:
            np.save(stream, plan, allow_pickle=False)
        return plan

    def _plan_pairs(
        self, sentences: np.ndarray, documents: np.ndarray, shard: int, epoch: int, count: int | None
    ) -> np.ndarray:
        max_tokens = self._sequence_length - SPECIAL_TOKENS_OF_A_PAIR
        entropy = (self._seed, _PAIRS_STREAM, epoch, shard, max_tokens)
        if self._objective.pair == "sop":
            plan = plan_swapped(sentences, documents, max_tokens, entropy, self._objective.short_sequence_share)
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
            with open_file(path) as stream:
                plan = np.lib.format.read_array(io.BytesIO(stream.read()), allow_pickle=False)
        except ValueError:
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
            and np.all((labels == 0) | (labels == 1))
        )
        return plan if is_plan else None


def _spans_used(plan: np.ndarray) -> np.ndarray:
    """How many spans each example has: int64 [examples]."""
    return np.count_nonzero(plan[:, 1:-1:2] > plan[:, :-1:2], axis=1)


def _places(plan: np.ndarray) -> np.ndarray:
    """How many positions of a row each example fills, with [CLS] and every [SEP]: int64 [examples]."""
    lengths = plan[:, 1:-1:2].astype(np.int64) - plan[:, :-1:2]
    return 1 + (lengths + (lengths > 0)).sum(axis=1)
