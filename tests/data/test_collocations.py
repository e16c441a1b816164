"""Collocations, compared with the paper's definition in plain Python, and the file that holds them."""

import math
from collections import Counter
from itertools import chain, combinations

import numpy as np
import pytest
from random_shards import DocumentWriter

from keras_bert.core.errors import UserError
from keras_bert.data import collocations as learned
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS, PIECES = 12, 4
VOCABULARY = Vocabulary(
    [*SPECIAL_TOKENS, *(f"w{number}" for number in range(WORDS)), *(f"##p{number}" for number in range(PIECES))]
)


def sentences(count=300, seed=0):
    """Sentences of words of one to three pieces, with two phrases that occur more often than by chance."""
    rng = np.random.default_rng(seed)
    phrases = [[(5,), (6, 17), (7,), (8,), (9, 18, 19)], [(10, 17), (11,)]]

    def word():
        pieces = rng.integers(5 + WORDS, len(VOCABULARY), rng.choice(3, p=[0.7, 0.2, 0.1]))
        return (int(rng.integers(5, 5 + WORDS)), *pieces.tolist())

    def sentence():
        parts = ([word()] if rng.random() < 0.8 else phrases[rng.integers(2)] for _ in range(rng.integers(1, 9)))
        return list(chain(*parts))

    return [sentence() for _ in range(count)]


def by_definition(text):
    """{n-gram: (PMI_n, count)} for each frequent n-gram, as the minimum over all divisions."""
    counts = Counter(
        tuple(words[start : start + size])
        for words in text
        for size in range(1, 6)
        for start in range(len(words) - size + 1)
    )
    total = sum(map(len, text))

    def log_p(words):
        return math.log(counts[words] / total)

    def pmi(words):
        inside = range(1, len(words))
        cuts = chain.from_iterable(combinations(inside, number) for number in inside)
        divided = [sum(log_p(words[a:b]) for a, b in zip((0, *cut), (*cut, len(words)))) for cut in cuts]
        return min(log_p(words) - value for value in divided)

    frequent = [words for words, count in counts.items() if len(words) > 1 and count >= learned.FEWEST_OCCURRENCES]
    return {words: (pmi(words), counts[words]) for words in frequent}


def write_shards(folder, text):
    """Shards with a document for every ten sentences."""
    with DocumentWriter(folder, VOCABULARY, 0.002) as writer:
        for first in range(0, len(text), 10):
            writer.add([list(chain(*words)) for words in text[first : first + 10]])
    return ShardSet.open(folder, VOCABULARY)


def test_pmi_is_the_least_over_all_divisions_within_sentences(tmp_path):
    text = sentences()
    shards = write_shards(str(tmp_path / "train"), text)
    assert len(shards.names) > 2
    expected = {tuple(chain(*words)): value for words, value in by_definition(text).items() if value[0] > 0}
    found = learned.collocations(learned._words(shards, VOCABULARY), 10**6)
    assert {ids: count for _, count, ids in found} == {ids: count for ids, (_, count) in expected.items()}
    assert [pmi for pmi, _, _ in found] == pytest.approx([expected[ids][0] for _, _, ids in found])
    assert (5, 6, 17, 7, 8, 9, 18, 19) in expected, "the phrase of five words is one"


def test_each_length_has_its_share_of_the_list_and_its_best_first():
    text = sentences()
    words = list(chain(*text))
    begins = np.zeros(len(words), bool)
    begins[np.cumsum([0, *map(len, text)])[:-1]] = True
    ids, starts = learned.flat(words)
    of_text = learned.Words(ids.astype(np.int32), starts, begins, np.ones(len(words), bool))
    whole, short = learned.collocations(of_text, 10**6), learned.collocations(of_text, 8)

    def sizes(found):
        return [sum(index < 5 + WORDS for index in each.ids) for each in found]

    assert sizes(short) == [2] * 4 + [3] * 2 + [4, 5]
    for size in range(2, 6):
        best = [each for each in whole if sizes([each]) == [size]]
        assert [each.pmi for each in best] == sorted((each.pmi for each in best), reverse=True)
        assert [each for each in short if sizes([each]) == [size]] == best[: sizes(short).count(size)]


def test_unknown_words_are_no_part_of_any(tmp_path):
    """[UNK] stands for any word, so a phrase of two would be frequent and meaningless."""
    text = [[(5,), (1,), (1,), (6,)], [(7, 17), (8,)]] * 20
    shards = write_shards(str(tmp_path / "train"), text)
    assert VOCABULARY.unk_id == 1
    assert [each.ids for each in learned.collocations(learned._words(shards, VOCABULARY), 100)] == [(7, 17, 8)]


def test_a_text_without_any_has_none(tmp_path):
    write_shards(str(tmp_path / "train"), [[(5,)], [(6, 17)]])
    learned.write_collocations(str(tmp_path), VOCABULARY, 100)
    assert learned.read_collocations(str(tmp_path), VOCABULARY) == []


def test_the_file_is_read_as_written_and_of_one_vocabulary(tmp_path):
    shards = write_shards(str(tmp_path / "train"), sentences())
    learned.write_collocations(str(tmp_path), VOCABULARY, 100)
    expected = [each.ids for each in learned.collocations(learned._words(shards, VOCABULARY), 100)]
    assert learned.read_collocations(str(tmp_path), VOCABULARY) == expected
    path = tmp_path / learned.COLLOCATIONS_FILE
    lines = path.read_text().split("\n")
    assert any(line.endswith("\tw0 w1 ##p0 w2 w3 w4 ##p1 ##p2") for line in lines)
    other = Vocabulary([*VOCABULARY.tokens[:-1], "##other"])
    whole = path.read_text()
    for vocabulary, damaged in (
        (other, whole),
        (VOCABULARY, whole[:-3]),
        (VOCABULARY, "\n".join(lines[:-2]) + "\n"),
        (VOCABULARY, lines[0] + "\n"),
        (VOCABULARY, ""),
        (VOCABULARY, whole.replace("w0 w1", "w0 w99")),
    ):
        path.write_text(damaged)
        with pytest.raises(UserError, match="collocations.txt: damaged, or of another vocabulary: .* Remove it."):
            learned.read_collocations(str(tmp_path), vocabulary, "Remove it.")
    path.unlink()
    with pytest.raises(UserError, match="collocations.txt: cannot be read .* Run `prepare` again with --collocations"):
        learned.read_collocations(str(tmp_path), VOCABULARY)
