"""What a BERT learns, and when: the snapshots of one pretraining run (Chiang, Huang and Lee 2020, arXiv 2010.02480)."""

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import scipy.stats
import tensorflow as tf

from keras_bert.config.studies import EMBRYOLOGY_PARTS, EmbryologyPlan, TaggedText
from keras_bert.core import files
from keras_bert.data.windows import batches_by_length
from keras_bert.inference.texts import encoder_inputs
from keras_bert.studies.downstream import Results, main_scores, metric, score_cell
from keras_bert.studies.probes import LayerStates, TaggedPieces, probe, tagged_pieces
from keras_bert.studies.snapshots import Snapshots, finetuned, spread
from keras_bert.studies.study import Findings, StudyFolder, cell, crossing, curves_picture, rows_of_markdown
from keras_bert.tasks.sources import file_of, find_split_files
from keras_bert.tasks.tagging.tagged_words import TaggedWords
from keras_bert.tasks.tagging.task import TAGGING
from keras_bert.text.vocabulary import Vocabulary

_SPECIAL_TOKENS = 2
_MOST_LOGITS = 1 << 25  # In one batch: 128 MiB.
_MOST_TOKENS = 4096

Masked = Callable[[dict[str, Any]], dict[str, Any]]  # A `BertForPreTraining`, or a stand-in.


class WordPredictions:
    """What a masked LM predicts for the words of tagged sentences; a word is right if all its pieces are the argmax.

    Args:
        model: the model, whose weights may change between calls.
    """

    def __init__(self, model: Masked, vocabulary: Vocabulary, pieces: TaggedPieces):
        self._vocabulary = vocabulary
        self._pieces = pieces
        spec = tf.TensorSpec([None, None], tf.int32)
        names = ("input_word_ids", "input_mask", "input_type_ids", "masked_lm_positions")

        @tf.function(input_signature=[dict.fromkeys(names, spec)])
        def predict(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
            return tf.argmax(model(inputs)["mlm_logits"], axis=-1, output_type=tf.int32)

        self._predict = predict

    def reconstructed(self) -> np.ndarray:
        """bool [words]: whether the model gives each word back where it sees it, with nothing masked."""
        pieces = self._pieces
        found = self._predicted(pieces.rows, [np.arange(len(row)) for row in pieces.rows])
        is_right = [given == row for given, row in zip(found, pieces.rows)]
        return np.array(
            [
                is_right[row][start : start + length].all()
                for row, start, length in zip(pieces.row, pieces.start, pieces.length)
            ]
        )

    def filled_in(self, words: np.ndarray) -> np.ndarray:
        """bool [n]: whether the model predicts each of these words with all its pieces masked, one word at a time."""
        pieces = self._pieces
        rows, places = [], []
        for word in words:
            place = pieces.start[word] + np.arange(pieces.length[word])
            row = pieces.rows[pieces.row[word]].copy()
            row[place] = self._vocabulary.mask_id
            rows.append(row)
            places.append(place)
        found = self._predicted(rows, places)
        return np.array(
            [(given == pieces.rows[pieces.row[word]][place]).all() for word, given, place in zip(words, found, places)]
        )

    def _predicted(self, rows: Sequence[np.ndarray], places: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The model's likeliest ids at these places of each row, counted from the first piece."""
        found = [np.zeros(0, np.int32)] * len(rows)
        tokens = min(_MOST_TOKENS, _MOST_LOGITS // len(self._vocabulary))
        for batch in batches_by_length(np.array([len(row) for row in rows]) + _SPECIAL_TOKENS, tokens):
            inputs = encoder_inputs([rows[index] for index in batch], self._vocabulary)
            positions = np.zeros((len(batch), max(len(places[index]) for index in batch)), np.int32)
            for number, index in enumerate(batch):
                positions[number, : len(places[index])] = places[index] + 1  # After [CLS].
            given = self._predict({**inputs, "masked_lm_positions": positions}).numpy()
            for number, index in enumerate(batch):
                found[index] = given[number, : len(places[index])]
        return found


def sampled(pieces: TaggedPieces, per_tag: int) -> np.ndarray:
    """int64 [n], at most `per_tag` words of each tag, taken evenly from all of them."""
    chosen = []
    for tag in pieces.all_tags():
        words = pieces.of_tag(tag)
        chosen.append(words[np.linspace(0, len(words) - 1, min(per_tag, len(words))).astype(np.int64)])
    return np.concatenate(chosen)


def by_tag(pieces: TaggedPieces, words: np.ndarray, is_right: np.ndarray) -> dict[str, list[int]]:
    """`{tag: [right words, words]}` of some words.

    Args:
        words: int64 [n], the words.
        is_right: bool [n], whether each is right.
    """
    tags = np.array(pieces.tags, object)[words]
    of_tags = {tag: is_right[tags == tag] for tag in pieces.all_tags()}
    return {tag: [int(right.sum()), len(right)] for tag, right in of_tags.items() if len(right)}


_MAX_LENGTH = 128  # Tokens of a row, for sentences.
_HALF = 50.0  # Per cent.
_STEP = "{:,.0f}"  # In a table.

Shares = Mapping[str, Sequence[int]]  # {tag: [right words, words]}
Words = Mapping[int, Mapping[str, Shares]]  # {step: {reconstructed or filled_in: shares}}
Scores = Mapping[int, Mapping[str, Sequence[float]]]  # {step: {probe: score of each layer}}
_Measured = TypeVar("_Measured")


def embryology(
    study: StudyFolder,
    plan: EmbryologyPlan,
    run: str,
    data: str,
    seeds: int,
    parts: Collection[str] = EMBRYOLOGY_PARTS,
    tasks_from: int | None = None,
) -> Findings:
    """Measures every snapshot that a run kept.

    Args:
        study: the study's folder; `snapshots.finetuned` describes where the runs of a task are.
        run: the folder of a finished pretraining run.
        data: the folder that contains the plan's folders.
        seeds: the number of fine-tuning seeds; a task's plan may have its own.
        parts: some of `EMBRYOLOGY_PARTS`.
        tasks_from: the most snapshots to fine-tune from; None for all.

    Raises:
        UserError: the run has no snapshots or is of another kind, or a text has no tags.
    """
    snapshots = Snapshots(run)
    steps, pictures = snapshots.steps, {}
    found: dict[str, dict[int, Any]] = {}
    if "words" in parts:
        words = _measured(study, snapshots, "words", *_words(snapshots, plan, data))
        found["words"] = words
        pictures["parts_of_speech"] = curves_picture(
            {"token reconstruction": _curves(words, "reconstructed"), "mask prediction": _curves(words, "filled_in")},
            "step",
            "per cent of the words",
            is_logarithmic=True,
            limits=(-2, 102),
        )
    if "probes" in parts and plan.probes:
        found["probes"] = _measured(study, snapshots, "probes", *_probes(snapshots, plan, data))
        panels = {name: _layer_curves(found["probes"], name) for name in plan.probes}
        pictures["probes"] = curves_picture(panels, "step", "per cent", is_logarithmic=True)
    if "tasks" in parts and plan.tasks:
        found["tasks"] = finetuned(study, snapshots, spread(steps, tasks_from), plan.tasks, data, seeds)
    learned = {step: snapshots.nats_below_unigram(step) for step in steps}
    nats = [(step, value) for step, value in learned.items() if value is not None]
    pictures["downstream"] = curves_picture(
        {
            "nats below the unigram, held out": {"masked LM": nats},
            **({"fine-tuned, per cent": _task_curves(found["tasks"])} if "tasks" in found else {}),
        },
        "step",
        "",
        is_logarithmic=True,
    )
    lines = [*table(steps, learned, found)]
    if "words" in found:
        lines += ["", "## Parts of speech", "", *tag_table(found["words"], plan.published), "", *notes(found, plan)]
    return Findings("What was learned when", lines, pictures)


def _measured(
    study: StudyFolder, snapshots: Snapshots, name: str, about: Mapping[str, Any], measure: Callable[[], _Measured]
) -> dict[int, _Measured]:
    """`{step: what was measured}` of every snapshot."""

    def of_step(step: int) -> _Measured:
        with snapshots.restored(step):
            return measure()

    about = {"run": snapshots.run.path, **about}
    parts = {
        step: study.kept(f"{name}/step-{step}", about, functools.partial(of_step, step)) for step in snapshots.steps
    }
    return study.made(parts, "Measured", f"{name}, step {{:,}}")


def _words(
    snapshots: Snapshots, plan: EmbryologyPlan, data: str
) -> tuple[dict[str, Any], Callable[[], Mapping[str, Shares]]]:
    """(what the figures depend on, function () -> `{"reconstructed": shares, "filled_in": shares}`)."""
    path, tagged = _read(plan.treebank, data, "dev")
    pieces = tagged_pieces(snapshots.tokenizer, tagged, _longest_row(snapshots))
    predictions = WordPredictions(snapshots.model, snapshots.tokenizer.vocabulary, pieces)
    known, masked = np.flatnonzero(pieces.is_known), sampled(pieces, plan.words_per_tag)

    def measure() -> dict[str, Shares]:
        return {
            "reconstructed": by_tag(pieces, known, predictions.reconstructed()[known]),
            "filled_in": by_tag(pieces, masked, predictions.filled_in(masked)),
        }

    return {"treebank": path, "words_per_tag": plan.words_per_tag}, measure


def _probes(
    snapshots: Snapshots, plan: EmbryologyPlan, data: str
) -> tuple[dict[str, Any], Callable[[], Mapping[str, Sequence[float]]]]:
    """(what the figures depend on, function () -> `{probe: [score of each layer]}`)."""
    paths: dict[str, str] = {}
    splits: dict[str, list[TaggedPieces]] = {}
    for name, text in plan.probes.items():
        for split, most in (("train", plan.probe_words), ("dev", plan.probe_words // 2)):
            path, tagged = _read(text, data, split)
            pieces = tagged_pieces(snapshots.tokenizer, _first(tagged, most), _longest_row(snapshots))
            splits.setdefault(name, []).append(pieces)
            paths[f"{name}.{split}"] = path
    states = LayerStates(snapshots.model.encoder, snapshots.tokenizer.vocabulary)

    def measure() -> dict[str, list[float]]:
        return {
            name: probe((states(train), train), (states(dev), dev), TAGGING[plan.probes[name].task] is TAGGING["ner"])
            for name, (train, dev) in splits.items()
        }

    return {**paths, "probe_words": plan.probe_words}, measure


def _read(text: TaggedText, data: str, split: str) -> tuple[str, TaggedWords]:
    """(path, words) of a split."""
    task = TAGGING[text.task]
    path = file_of(text.task, find_split_files(task, files.join(data, text.folder)), split)
    return path, task.reader(path).whole()


def _first(tagged: TaggedWords, most: int) -> TaggedWords:
    """The first sentences, with at most `most` words in all unless the first alone has more."""
    sentences = max(int(np.searchsorted(tagged.starts, most, side="right")) - 1, 1)
    end = int(tagged.starts[sentences])
    labels = tagged.labels and tagged.labels[:end]
    return TaggedWords(tagged.origin, tagged.words[:end], labels, tagged.starts[: sentences + 1], tagged.lines[:end])


def _longest_row(snapshots: Snapshots) -> int:
    """The most tokens of a row, limited to positions that the run has trained."""
    return min(_MAX_LENGTH, max(phase.sequence_length for phase in snapshots.config.phases))


def share(counts: Sequence[int]) -> float:
    """[right, all] in per cent."""
    return 100.0 * counts[0] / counts[1]


def overall(shares: Shares, weights: Shares) -> float:
    """The share of all words that are right, in per cent, when each tag is as frequent as in `weights`."""
    counts = {tag: weights[tag][1] for tag in shares}
    return sum(share(shares[tag]) * counts[tag] for tag in shares) / sum(counts.values())


def _curve(words: Words, kind: str, tag: str) -> list[tuple[float, float]]:
    return [(step, share(measured[kind][tag])) for step, measured in words.items()]


def _curves(words: Words, kind: str) -> dict[str, list[tuple[float, float]]]:
    return {tag: _curve(words, kind, tag) for tag in next(iter(words.values()))[kind]}


def _layer_curves(probes: Scores, name: str) -> dict[str, list[tuple[float, float]]]:
    layers = len(next(iter(probes.values()))[name])
    titles = ["embeddings", *(f"layer {number}" for number in range(1, layers))]
    return {
        title: [(step, measured[name][number]) for step, measured in probes.items()]
        for number, title in enumerate(titles)
    }


def _task_curves(tasks: Mapping[int, Mapping[str, Results]]) -> dict[str, list[tuple[float, float]]]:
    names = next(iter(tasks.values()))
    return {
        f"{task}, {metric(names[task])}": [
            (step, float(np.median(main_scores(by_task[task])))) for step, by_task in tasks.items()
        ]
        for task in names
    }


def table(
    steps: Sequence[int], learned: Mapping[int, float | None], found: Mapping[str, Mapping[int, Any]]
) -> Iterator[str]:
    """Lines of Markdown, a row for each snapshot."""
    header, columns = ["step", "nats below the unigram"], [[f"{step:,}" for step in steps]]
    columns.append([cell(learned[step], "{:.3f}") for step in steps])
    if "words" in found:
        for kind, title in (("reconstructed", "words reconstructed"), ("filled_in", "masked words predicted")):
            header.append(title)
            measured = (found["words"][step] for step in steps)
            columns.append([f"{overall(values[kind], values['reconstructed']):.1f}" for values in measured])
    for name in next(iter(found.get("probes", {0: {}}).values())):
        header.append(f"probe: {name} (best layer)")
        scores = (found["probes"][step][name] for step in steps)
        columns.append([f"{max(values):.1f} ({int(np.argmax(values))})" for values in scores])
    for task, results in next(iter(found.get("tasks", {0: {}}).values())).items():
        header.append(f"{task}, {metric(results)}")
        columns.append([score_cell(found["tasks"][step][task]) if step in found["tasks"] else "–" for step in steps])
    return rows_of_markdown(header, zip(*columns))


def tag_table(words: Words, published: Mapping[str, float]) -> Iterator[str]:
    """Lines of Markdown, a row for each part of speech, the earliest learned first."""
    *_, last = words.values()
    rows = []
    for tag, counts in last["reconstructed"].items():
        seen, masked = _curve(words, "reconstructed", tag), _curve(words, "filled_in", tag)
        half_seen = crossing(seen, _HALF)
        half_masked = crossing(masked, masked[-1][1] / 2) if masked[-1][1] else None
        cells = [tag, f"{counts[1]:,}", cell(half_seen, _STEP), f"{seen[-1][1]:.1f}", cell(half_masked, _STEP)]
        cells += [f"{masked[-1][1]:.1f}", *([cell(published.get(tag), _STEP)] if published else [])]
        rows.append((float("inf") if half_seen is None else half_seen, cells))
    header = ["part of speech", "words", "half reconstructed at step", "reconstructed at the end"]
    header += ["half of its end predicted at step", "predicted at the end", *(["*published*"] if published else [])]
    return rows_of_markdown(header, [cells for _, cells in sorted(rows, key=lambda row: row[0])])


def agreement(words: Words, published: Mapping[str, float]) -> tuple[float, int]:
    """(Spearman's correlation of our steps with the published, number of tags); a tag never learned ranks last."""
    *_, last = words.values()
    tags = [tag for tag in published if tag in last["reconstructed"]]
    steps = [crossing(_curve(words, "reconstructed", tag), _HALF) for tag in tags]
    ours = [float("inf") if step is None else step for step in steps]
    if len(set(ours)) < 2:
        return float("nan"), len(tags)
    ranks = scipy.stats.rankdata(ours)
    return float(scipy.stats.spearmanr(ranks, [published[tag] for tag in tags]).statistic), len(tags)


def notes(found: Mapping[str, Any], plan: EmbryologyPlan) -> Iterator[str]:
    """Lines of Markdown on how to read the table of the parts of speech."""
    yield "A word is right if all its pieces are the likeliest ones; words with [UNK] are left out."
    if plan.published:
        correlation, count = agreement(found["words"], plan.published)
        yield f"Published: the step at which half were reconstructed, {plan.source}."
        yield f"Spearman's correlation of the {count} steps with ours: {correlation:.2f}."
