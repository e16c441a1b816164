"""The ablation of the paper: ways to pretrain on the same number of tokens, compared on tasks that tell them apart."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.studies import AblationPlan, VariantPlan
from keras_bert.core import files
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.corpus.held_out import VALIDATION, split_documents
from keras_bert.data.shards.shard_format import Meta, read_meta
from keras_bert.studies.downstream import Results, baseline, better, finetunings, main_scores, metric
from keras_bert.studies.restoration import LOST, MOVED, NATS, restoration
from keras_bert.studies.runs import pretrained
from keras_bert.studies.study import Findings, StudyFolder, cell, median_and_range, rows_of_markdown
from keras_bert.tasks.finetuning.pictures import Bars, Groups, scores_picture
from keras_bert.training.run_folder import RunFolder

TITLE = "The ablation of the paper"

# {task: {variant: (the better rate, the results of each pretraining seed at it)}}
Found = Mapping[str, Mapping[str, tuple[float, Sequence[Results]]]]


def ablation(
    study: StudyFolder,
    plan: AblationPlan,
    variants: Mapping[str, VariantPlan],
    text: str,
    data: str,
    pretraining_seeds: int,
    seeds: int,
) -> Findings:
    """Pretrains each variant with each seed, and fine-tunes each on every task.

    Args:
        study: the study's folder; pretraining runs are in pretrained/VARIANT/seed-SEED, those of a task in
            TASK/VARIANT/seed-SEED/rate-RATE.
        text: a folder that `prepare` wrote, or whatever `pretrain --data` takes.
        data: the folder that contains the tasks' folders.
        pretraining_seeds: the number of pretraining seeds of each variant.
        seeds: the number of fine-tuning seeds for each of these; a task's plan may have its own number.
    """
    numbers = range(1, pretraining_seeds + 1)
    bases = {name: variant.pretrained_as or name for name, variant in variants.items()}
    made_runs = study.made(
        {
            (base, seed): functools.partial(
                pretrained,
                study.join("pretrained", base, f"seed-{seed}"),
                plan.variants[base].recipe or plan.recipe,
                {**plan.set, **plan.variants[base].set},
                text,
                seed,
            )
            for seed, base in itertools.product(numbers, dict.fromkeys(bases.values()))
        },
        "Pretrained",
        "{}, seed {}",
    )
    runs = {(name, seed): made_runs[base, seed] for seed in numbers for name, base in bases.items()}
    # For each task, all variants of one seed come before the next seed, so that a stopped study has a whole column.
    parts = {
        (task, name, seed, rate): make
        for task, planned in plan.tasks.items()
        for seed, (name, variant) in itertools.product(numbers, variants.items())
        for rate, make in finetunings(
            task,
            dataclasses.replace(planned, set={**planned.set, **variant.finetuning}),
            data,
            runs[name, seed],
            seeds,
            study.join(task, name, f"seed-{seed}"),
            f"pretrained/{bases[name]}/seed-{seed}",  # Relative to the study's folder, which may move.
        ).items()
    }
    made = study.made(parts, "Fine-tuned", "{}: {}, seed {} at {:g}")
    found = {
        task: {
            name: better({rate: [made[task, name, seed, rate] for seed in numbers] for rate in planned.rates}, pooled)
            for name in variants
        }
        for task, planned in plan.tasks.items()
    }
    measured = {"nats below the unigram": {key: nats_below(run) for key, run in runs.items()}}
    if bits := _bits(study, runs, text):
        measured["bits per character"] = bits
    measured.update(_restored(study, runs))
    learned = {
        heading: {name: [figures[name, seed] for seed in numbers] for name in variants}
        for heading, figures in measured.items()
    }
    lines = [*table(found, learned, variants), "", *sources(variants)]
    scores = drawn(found, variants)
    return Findings(TITLE, lines, {"ablation": scores_picture(scores, TITLE)} if scores else {})


def pooled(results: Sequence[Results]) -> list[float]:
    """The main metric over the seeds of pretraining and of fine-tuning, in per cent."""
    return [score for result in results for score in main_scores(result)]


def nats_below(run: str) -> float | None:
    """How far below the unigram a run's masked LM came at [MASK]s of held-out text; None for a model without [MASK]."""
    results = RunFolder(run).results() or {}
    if "eval_mask_token_loss" not in results:
        return None
    return results["eval_mask_token_unigram_loss"] - results["eval_mask_token_loss"]


def _bits(study: StudyFolder, runs: Mapping[tuple[str, int], str], text: str) -> dict[tuple[str, int], float | None]:
    """The loss of each run at [MASK]s of held-out text in bits per character; {} if all share one vocabulary.

    None for a run without its own text or without [MASK].
    """
    metas = {key: held_out_meta(run) for key, run in runs.items()}
    if len({meta["vocabulary"] for meta in metas.values() if meta}) < 2:
        return {}
    # The text, and which of its documents are held out, are the same for all, whichever variants come first.
    first = next(run for key, run in runs.items() if metas[key])
    characters = study.kept("held-out characters", {"text": text}, functools.partial(held_out_characters, first))()
    bits: dict[tuple[str, int], float | None] = {}
    for key, meta in metas.items():
        loss = (RunFolder(runs[key]).results() or {}).get("eval_mask_token_loss")
        bits[key] = bits_per_character(loss, meta, characters) if meta and loss is not None else None
    return bits


def held_out_meta(run: str) -> Meta | None:
    """The meta.json of the held-out shards of a run's own text; None for shards of `prepare`, or streamed text."""
    path = files.join(RunFolder(run).data, "shards", VALIDATION, "meta.json")
    return read_meta(path) if files.exists(path) else None


def held_out_characters(run: str) -> int:
    """The number of characters in the held-out documents of a run's own text; reads all of the text."""
    config = PretrainConfig.from_file(files.join(run, "config.yaml"))
    documents = Corpus(config.data.files, config.data).documents()
    return sum(len(text) for text, held_out in split_documents(documents, config.data.validation_share) if held_out)


def bits_per_character(nats: float, meta: Meta, characters: int) -> float:
    """The loss in bits per character of the text.

    Args:
        nats: the loss, per piece.
        meta: the meta.json of the shards on which it was measured.
        characters: the number of characters of the text in these shards.
    """
    return nats / math.log(2) * meta["tokens"] / characters


def _restored(
    study: StudyFolder, runs: Mapping[tuple[str, int], str]
) -> dict[str, dict[tuple[str, int], float | None]]:
    """How much of corrupted text each run restores, `{heading: figures}`; {} if none predicts it with a decoder."""
    if not any("eval_decoded_loss" in (RunFolder(run).results() or {}) for run in runs.values()):
        return {}
    parts = {
        (name, seed): study.kept(f"restored {name}, seed {seed}", {}, functools.partial(restoration, run))
        for (name, seed), run in runs.items()
    }
    made = study.made(parts, "Restored", "{}, seed {}")
    return {heading: {key: found.get(heading) for key, found in made.items()} for heading in (LOST, NATS, MOVED)}


def table(
    found: Found, learned: Mapping[str, Mapping[str, Sequence[float | None]]], variants: Mapping[str, VariantPlan]
) -> Iterator[str]:
    """Lines of Markdown: a row for each variant, with its scores on the tasks and the papers' figures.

    `learned` has the figures of pretraining, `{heading: {variant: [one for each seed]}}`.
    """
    published = published_columns(variants)
    header = ["", *learned, *(f"{task}, {_metric(by_name)}" for task, by_name in found.items())]
    rows = []
    firsts = [next(iter(by_name.values()))[1][0] for by_name in found.values()]
    bases = (baseline(first) for first in firsts)
    rows.append(["most frequent answer", *("–" for _ in learned), *map(cell, bases), *("–" for _ in published)])
    for name, variant in variants.items():
        figures = ([value for value in by_name[name] if value is not None] for by_name in learned.values())
        rows.append(
            [
                _shown(name),
                *(median_and_range(values, "{:.3f}".format) if values else "–" for values in figures),
                *(median_and_range(pooled(by_name[name][1]), "{:.1f}".format) for by_name in found.values()),
                *(cell(variant.published.get(column)) for column in published),
            ]
        )
    return rows_of_markdown([*header, *(f"*{column}*" for column in published)], rows)


def _shown(name: str) -> str:
    return name.replace("_", " ")


def _metric(by_name: Mapping[str, tuple[float, Sequence[Results]]]) -> str:
    return metric(next(iter(by_name.values()))[1][0])


def published_columns(variants: Mapping[str, VariantPlan]) -> list[str]:
    """The names of the papers' figures, in the order in which the variants list them."""
    return list(dict.fromkeys(column for variant in variants.values() for column in variant.published))


def sources(variants: Mapping[str, VariantPlan]) -> Iterator[str]:
    """Lines of Markdown with the sources of the published figures."""
    by_source: dict[str, list[str]] = {}
    for name, variant in variants.items():
        if variant.source:
            by_source.setdefault(variant.source, []).append(_shown(name))
    if by_source:
        yield "Figures in italics were published for models of other sizes:"
        yield ""
        yield from (f"- {', '.join(names)}: {source}" for source, names in by_source.items())


def drawn(found: Found, variants: Mapping[str, VariantPlan]) -> Groups:
    """The scores in the form for `scores_picture`: our tasks, then the published ones."""
    ours: dict[str, Bars] = {
        f"{task}\n{_metric(by_name)}": {_shown(name): pooled(by_name[name][1]) for name in variants}
        for task, by_name in found.items()
    }
    theirs: dict[str, Bars] = {
        f"published:\n{column}": {_shown(name): [plan.published.get(column)] for name, plan in variants.items()}
        for column in published_columns(variants)
    }
    return {**ours, **theirs}
