"""The table of what models are worth."""

from keras_bert.studies.downstream import better, main_scores, table


def results(values, per_cent=False, majority=0.5):
    """As `finetune --seeds` writes them."""
    return {
        "main_metric": "f1",
        "per_cent": per_cent,
        "seeds": list(range(1, len(values) + 1)),
        "splits": {"dev": {"f1": sorted(values)[len(values) // 2]}, "other": {"f1": 1.0}},
        "over_seeds": {"dev": {"f1": {"values": values}}, "other": {"f1": {"values": [1.0]}}},
        "baseline": {"dev": {"f1": majority}, "other": {"f1": 0.0}},
    }


def test_the_better_rate_counts_for_each_model_by_its_median():
    """Not by its best seed: that would reward a rate that varies most."""
    steady, lucky = results([0.70, 0.71, 0.72]), results([0.60, 0.69, 0.90])
    rate, found = better({1e-3: lucky, 5e-4: steady}, main_scores)
    assert rate == 5e-4 and found is steady
    lines = list(
        table({"ner": {"scratch": (1e-3, results([0.6, 0.5, 0.55])), "ours": (rate, found)}}, ["scratch", "ours"])
    )
    assert lines[-1] == "| ner | f1 | 50.0 | 55.0 (50.0–60.0) at 0.001 | 71.0 (70.0–72.0) at 0.0005 |"
    assert len({line.count("|") for line in lines}) == 1


def test_scores_are_per_cent_whatever_they_are_written_as():
    assert main_scores(results([0.25, 0.5])) == [25.0, 50.0]
    assert main_scores(results([25.0, 50.0], per_cent=True)) == [25.0, 50.0]
    no_majority = table({"stsb": {"a": (1e-4, results([0.5], majority="–"))}}, ["a"])
    assert list(no_majority)[-1] == "| stsb | f1 | – | 50.0 at 0.0001 |"
