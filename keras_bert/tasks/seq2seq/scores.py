"""How close the texts that a model wrote are to the wanted ones, in per cent.

chrF2 (Popović 2015) and BLEU (Papineni et al. 2002) are for the whole set, as sacrebleu computes them. ROUGE-1, ROUGE-2
and ROUGE-L (Lin 2004) are the mean F1 over the texts, as rouge-score computes it with Porter's stemmer; it drops all
characters but a to z and digits.
"""

from collections.abc import Callable, Sequence

import numpy as np

from keras_bert.core import imports

Texts = Sequence[str]


def _exact_match(written: Texts, wanted: Texts) -> float:
    return 100.0 * float(np.mean([one == other for one, other in zip(written, wanted, strict=True)]))


def _chrf(written: Texts, wanted: Texts) -> float:
    metrics = imports.import_extra("sacrebleu.metrics", "chrf")
    return metrics.CHRF().corpus_score(written, [wanted]).score


def _bleu(written: Texts, wanted: Texts) -> float:
    metrics = imports.import_extra("sacrebleu.metrics", "bleu")
    return metrics.BLEU().corpus_score(written, [wanted]).score


def _rouge(name: str) -> Callable[[Texts, Texts], float]:
    def score(written: Texts, wanted: Texts) -> float:
        scorer = imports.import_extra("rouge_score.rouge_scorer", name).RougeScorer([name], use_stemmer=True)
        pairs = zip(wanted, written, strict=True)
        return 100.0 * float(np.mean([scorer.score(*pair)[name].fmeasure for pair in pairs]))

    return score


_SCORES: dict[str, Callable[[Texts, Texts], float]] = {
    "chrf": _chrf,
    "bleu": _bleu,
    "rouge1": _rouge("rouge1"),
    "rouge2": _rouge("rouge2"),
    "rougeL": _rouge("rougeL"),
    "exact_match": _exact_match,
}
_PACKAGE_OF = {"chrf": "sacrebleu", "bleu": "sacrebleu"} | dict.fromkeys(("rouge1", "rouge2", "rougeL"), "rouge_score")


def require_packages(metrics: Sequence[str]) -> None:
    """Raises `UserError` if a package that one of the metrics needs is not installed."""
    for name in metrics:
        if name in _PACKAGE_OF:
            imports.require(_PACKAGE_OF[name], f"seq2seq.metrics: {name}")


def text_scores(metrics: Sequence[str], written: Texts, wanted: Texts) -> dict[str, float]:
    """`{metric: score}` in per cent, in the order of `metrics`, of `config.finetuning.SEQ2SEQ_METRICS`.

    Args:
        written: what the model wrote, one text for each of `wanted`.

    Raises:
        UserError: a package that a metric needs is not installed.
    """
    return {name: _SCORES[name](written, wanted) for name in metrics}
