"""Tagging with a conditional random field: rows in windows, steps on one and on two replicas, and whole sentences."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf
from tiny import random_weights, without_dropout

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.training import OptimizerConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.length_batches import LengthBatches
from keras_bert.inference.loading import load_folder
from keras_bert.tasks.tagging.head import CrfTaggingConfig
from keras_bert.tasks.tagging.problem import TaggingProblem
from keras_bert.tasks.tagging.task import NER, TOKENS
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.step import Step, all_outputs
from keras_bert.training.strategy import make_strategy

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "a", "b", "c", "##a", "##b", "##c"])


def problem_of(task, path, content, **settings):
    path.write_text(content, encoding="utf-8")
    values = {"task": task.name, "head": {"crf": True}, "input": {"max_length": 12}}
    config = FinetuneConfig.from_mapping(values, settings)
    source = {"train": str(path), "dev": str(path)}
    return TaggingProblem(task=task, source=source, tokenizer=WordPieceTokenizer(VOCABULARY), config=config)


def sentences(count=11, longest=30, labels=("B-X", "O"), seed=0):
    """Words in columns, in sentences from one word to many windows; some entities have several words."""
    random, lines = np.random.default_rng(seed), []
    for _ in range(count):
        before = "O"
        for word in random.choice(list("abc"), random.integers(1, longest)):
            label = str(random.choice(labels))
            label = "I-X" if before != "O" and random.random() < 0.5 else label
            lines.append(f"{word}{random.choice(list('abc'))} {label}")
            before = label
        lines.append("")
    return "\n".join(lines)


def model_of(problem, strategy, seed=0):
    with strategy.scope():
        model = problem.make_model(without_dropout(vocab_size=len(VOCABULARY)))
        random_weights(model, seed)
        optimizer = make_optimizer(OptimizerConfig(learning_rate=1e-2, warmup_steps=0), 50)
        optimizer.build(model.trainable_variables)
    return model, optimizer


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_whole_sentences_are_decoded_across_their_windows(scheme, tmp_path):
    """Decoded by windows, an entity could begin with I where a window does. Only valid labels may come out."""
    problem = problem_of(NER, tmp_path / "words.txt", sentences(), **{"data.learned_scheme": scheme})
    assert (
        problem.head == CrfTaggingConfig(problem.head.labels, scheme)
        and len(problem.head.labels) == 1 + len(scheme) - 1
    )
    strategy = make_strategy("one")
    model, _ = model_of(problem, strategy)
    batches = LengthBatches(problem.rows("train"), 4, 0, 0, [8, 12], shuffle=False).all_batches()
    outputs, figures = all_outputs(Step(strategy, model, problem.objective), batches, problem.by_token)
    answers = problem.answers("train", {**outputs, **problem.shared_outputs(model)})
    tagged, layout = problem._words("train"), problem.layout("train").words
    emissions = np.concatenate(outputs["logits"])[layout.places]
    starts, transitions, ends = (value.numpy() for value in model.crf.scores())
    numbers = [problem.head.labels.index(answer) for answer in answers]
    for first, end in itertools.pairwise(tagged.starts.tolist()):
        own, length = numbers[first:end], end - first
        score = starts[own[0]] + ends[own[-1]] + sum(emissions[first + place, label] for place, label in enumerate(own))
        score += sum(transitions[pair] for pair in itertools.pairwise(own))
        assert score > -1e3  # No forbidden label.
        if length <= 6:
            every = itertools.product(range(len(starts)), repeat=length)
            best = max(
                starts[path[0]]
                + ends[path[-1]]
                + sum(emissions[first + i, label] for i, label in enumerate(path))
                + sum(transitions[pair] for pair in itertools.pairwise(path))
                for path in every
            )
            assert score == pytest.approx(best, rel=1e-5)
    assert np.isfinite(figures["loss"]) and 0 < figures["accuracy"] < 1


def test_windows_know_where_sentences_begin_and_end(tmp_path):
    """A window in the middle of a sentence may begin with I; at the start of a sentence, none may."""
    problem = problem_of(NER, tmp_path / "words.txt", sentences())
    rows, layout = problem.rows("train"), problem.layout("train").words
    assert rows.extra["sentence_starts"].sum() == rows.extra["sentence_ends"].sum() == 11 < len(rows)
    first_rows = np.flatnonzero(np.diff(layout.row_sentences, prepend=-1))
    assert rows.extra["sentence_starts"][first_rows].all()
    strategy = make_strategy("one")
    model, _ = model_of(problem, strategy)
    batches = LengthBatches(rows, 4, 0, 0, [8, 12], shuffle=False).all_batches()
    outputs, _ = all_outputs(Step(strategy, model, problem.objective), batches, problem.by_token)
    assert (outputs["log_likelihood"] > -1e3).all()


@pytest.mark.slow
def test_two_replicas_train_as_one(tmp_path, mirrored_strategy):
    """Rows that only fill a batch and words that are padding do not count."""
    problem = problem_of(NER, tmp_path / "words.txt", sentences(count=7, longest=9))
    weights = []
    for strategy in (make_strategy("one"), mirrored_strategy):
        model, optimizer = model_of(problem, strategy)
        step = Step(strategy, model, problem.objective, optimizer)
        batches = LengthBatches(problem.rows("train"), 4, 0, 0, [12]).all_batches()
        for number, batch in enumerate(strategy.experimental_distribute_dataset(batches)):
            results = step.train(batch, tf.constant(number, tf.int64))
            assert np.isfinite(float(results["grad_norm"]))
        weights.append([variable.numpy() for variable in model.trainable_variables])
    for one, two in zip(*weights):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)


def test_it_learns_what_only_neighbours_tell(tmp_path):
    """Labels alternate whatever the words, so every emission is the same, and only the transitions can know."""
    lines = "\n".join("\n".join(f"a {'NV'[place % 2]}" for place in range(length)) + "\n" for length in (4, 5, 6) * 4)
    problem = problem_of(TOKENS, tmp_path / "words.txt", lines)
    strategy = make_strategy("one")
    with strategy.scope():
        model = problem.make_model(without_dropout(vocab_size=len(VOCABULARY)))
        model.encoder.embeddings.position_embeddings.assign(model.encoder.embeddings.position_embeddings * 0)
        model.encoder.trainable = False
        optimizer = make_optimizer(OptimizerConfig(learning_rate=0.1, warmup_steps=0), 60)
        optimizer.build(model.trainable_variables)
    step = Step(strategy, model, problem.objective, optimizer)
    batches = LengthBatches(problem.rows("train"), 12, 0, 0, [12]).all_batches()
    for number in range(30):
        step.train(next(iter(batches)), tf.constant(number, tf.int64))
    outputs, _ = all_outputs(step, batches, problem.by_token)
    answers = problem.answers("train", {**outputs, **problem.shared_outputs(model)})
    assert problem.evaluate("train", answers)["accuracy"] == 1.0
    emissions = np.concatenate(outputs["logits"])[problem.layout("train").words.places]
    alone = [problem.head.labels[number] for number in emissions.argmax(axis=1)]
    assert problem.evaluate("train", alone)["accuracy"] < 0.7


@pytest.mark.parametrize("bilstm_size", [None, 4])
def test_its_folder_is_read_back_under_names_of_its_own(tmp_path, bilstm_size):
    """Also with a BiLSTM between the encoder and the CRF, as in Lample et al. 2016."""
    problem = problem_of(NER, tmp_path / "words.txt", sentences(), **{"data.learned_scheme": "bioes"})
    problem.head = dataclasses.replace(problem.head, bilstm_size=bilstm_size)
    model, _ = model_of(problem, make_strategy("one"))
    write_model_folder(str(tmp_path / "model"), model, VOCABULARY, True, head=problem.head, task=problem.task_record())
    folder = open_model_folder(str(tmp_path / "model"))
    assert folder.head == problem.head
    own = {name for name in folder.tensor_shapes() if name.startswith("keras_bert.crf.")}
    assert own == {
        f"keras_bert.crf.{name}" for name in ("transitions", "starts", "ends", "classifier.weight", "classifier.bias")
    }
    loaded = load_folder(folder).model
    assert (model.bilstm is not None) == (loaded.bilstm is not None) == bool(bilstm_size)
    for one, other in zip(model.trainable_variables, loaded.trainable_variables, strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.crf.forbidden.tolist() == model.crf.forbidden.tolist() and loaded.crf.forbidden.any()
    again = type(model).from_config(model.get_config())
    assert again.crf.forbidden.tolist() == model.crf.forbidden.tolist()


@pytest.mark.parametrize(
    "task, settings, line",
    [
        ("sst2", {}, "head.crf: needs a tagging task"),
        ("ner", {"features.kind": "last"}, "head.crf: needs an encoder that is trained"),
        ("ner", {"data.learned_scheme": "iob1"}, "learned_scheme: needs one of bio, bioes"),
    ],
)
def test_what_has_no_crf_is_refused(task, settings, line):
    with pytest.raises(UserError, match=line):
        FinetuneConfig.from_mapping({"task": task, "head": {"crf": True}}, settings)
