"""Fine-tuning with a teacher: the loss, whose answers are learned, how runs resume, and refusals."""

import json
import os
import shutil

import numpy as np
import pytest
import scipy.special
import tensorflow as tf
from clocked import without_clock
from finetuning import VOCABULARY, WORDS, finetune_config, write_reviews
from tiny import random_weights, without_dropout

import keras_bert
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, SINGLE_LABEL, FinetuneConfig
from keras_bert.config.teacher import TeacherConfig
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.inference.loading import model_tokenizer
from keras_bert.models.tensor_names import model_variables
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.network import BertForSequenceClassification, ClassificationObjective
from keras_bert.tasks.distillation import DistillationObjective
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.finetuning import teacher as teachers
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.finetuning.teacher import Teacher
from keras_bert.tasks.multiple_choice.network import BertForMultipleChoice
from keras_bert.tasks.multiple_choice.task import MultipleChoiceConfig
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.tagging.head import TokenClassificationConfig
from keras_bert.tasks.tagging.network import BertForTokenClassification
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.stop_request import StopRequest
from keras_bert.training.strategy import make_strategy

LENGTH = 24


def write_teacher(folder, labels=("negative", "positive"), problem_type=SINGLE_LABEL, task="text", words=WORDS):
    """A classifier of another size, with a vocabulary in another order and answers that are not certain."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *reversed(words)])
    config = without_dropout(vocab_size=len(vocabulary), max_position_embeddings=32, hidden_size=8)
    model = BertForSequenceClassification(config, len(labels))
    random_weights(model, seed=3, scale=0.5)
    head = ClassificationConfig(labels, problem_type)
    record = {"task": task, "max_length": LENGTH, "texts": ["text"], "label": "label"}
    write_model_folder(str(folder), model, vocabulary, lower_case=True, head=head, task=record)
    return str(folder)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    return write_teacher(tmp_path_factory.mktemp("teacher") / "model")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    return {
        f"data.{split}": write_reviews(folder / f"{split}.jsonl", 48, seed)
        for seed, split in enumerate(("train", "dev"))
    }


def config_of(init, tables, teacher=None, **overrides):
    more = {"teacher.model": teacher} if teacher else {}
    short = {"training.epochs": 1.0, "training.log_every": 1}
    return finetune_config(init, "text", **{"data.label": "label", **tables, **short, **more, **overrides})


def figures(path):
    return [without_clock(line) for line in read_metrics(os.path.join(path, "metrics.jsonl"))]


def weights(path):
    return {name.attribute: variable.numpy() for name, variable in model_variables(keras_bert.load(path).model)}


def divergence(teacher, student):
    return scipy.special.rel_entr(teacher, student).sum(-1)


def outcomes(logits):
    """[..., 2]: the probabilities of yes and no."""
    return np.stack([scipy.special.expit(logits), scipy.special.expit(-logits)], -1)


@pytest.mark.parametrize("problem_type", [SINGLE_LABEL, "choice", MULTI_LABEL, REGRESSION])
def test_the_loss_and_its_gradient_are_those_of_the_papers(problem_type):
    """Against NumPy, the gradient by differences; examples that only fill a batch do not count."""
    random = np.random.default_rng(0)
    logits, teacher = random.normal(0, 2, (2, 4, 3))
    labels, example_weights = np.array([0, 2, 1, 1]), np.array([1.0, 1.0, 1.0, 0.0])
    own_type = SINGLE_LABEL if problem_type == "choice" else problem_type
    if problem_type == "choice":  # The second example has two choices, and another batch has one with four.
        logits[1, 2] = teacher[1, 2] = -np.inf
        labels[1] = 0
        teacher = np.concatenate([teacher, np.full((4, 1), -np.inf)], axis=1)
    elif problem_type == MULTI_LABEL:
        labels = (random.random((4, 3)) > 0.5).astype("float64")
    elif problem_type == REGRESSION:
        logits, teacher, labels = logits[:, :1], teacher[:, :1], labels.astype("float64")

    def expected(logits):
        t, weight = 3.0, 0.7
        seen = teacher[:, : logits.shape[1]]
        if own_type == SINGLE_LABEL:
            own = -scipy.special.log_softmax(logits, -1)[np.arange(4), labels]
            far = t**2 * divergence(scipy.special.softmax(seen / t, -1), scipy.special.softmax(logits / t, -1))
        elif own_type == MULTI_LABEL:
            own = divergence(np.stack([labels, 1 - labels], -1), outcomes(logits)).mean(-1)
            far = t**2 * divergence(outcomes(seen / t), outcomes(logits / t)).mean(-1)
        else:
            own, far = (logits[:, 0] - labels) ** 2, (logits[:, 0] - seen[:, 0]) ** 2
        return np.array([(1 - weight) * own[:3].mean(), weight * far[:3].mean()])

    objective = DistillationObjective(ClassificationObjective(own_type), TeacherConfig("t", 0.7, 3.0))
    kind = "int32" if own_type == SINGLE_LABEL else "float32"
    batch = {"labels": tf.constant(labels, kind), "example_weights": tf.constant(example_weights, "float32")}
    batch["teacher_logits"] = tf.constant(teacher, "float32")
    variable = tf.Variable(logits, dtype="float32")
    with tf.GradientTape() as tape:
        sums, counts = objective.sums({"logits": tf.identity(variable)}, batch), objective.counts(batch)
        losses = [sums[term]["loss"] / counts[term] for term in objective.terms]
        loss = tf.add_n(losses)
    assert objective.terms == ("labels", "teacher")
    np.testing.assert_allclose(losses, expected(logits), rtol=2e-5)
    gradient = np.zeros_like(logits)
    for place in zip(*np.nonzero(np.isfinite(logits))):
        ahead, behind = logits.copy(), logits.copy()
        ahead[place] += 1e-5
        behind[place] -= 1e-5
        gradient[place] = (expected(ahead).sum() - expected(behind).sum()) / 2e-5
    np.testing.assert_allclose(tape.gradient(loss, variable), gradient, atol=2e-5)


@pytest.mark.slow
def test_with_weight_0_it_is_the_run_without_a_teacher(init, tables, teacher, tmp_path):
    """Bit for bit: the teacher changes nothing but the loss."""
    FinetuningRuns(config_of(init, tables)).one(str(tmp_path / "alone"))
    FinetuningRuns(config_of(init, tables, teacher, **{"teacher.weight": 0.0})).one(str(tmp_path / "taught"))
    alone, taught = weights(str(tmp_path / "alone")), weights(str(tmp_path / "taught"))
    for name, value in alone.items():
        np.testing.assert_array_equal(taught[name], value, name)
    for one, other in zip(figures(tmp_path / "alone"), figures(tmp_path / "taught"), strict=True):
        assert one.items() <= other.items()


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_to_the_same_end(init, tables, teacher, tmp_path, monkeypatch):
    """From the answers in its folder: the teacher might answer differently on another machine, and is not asked."""
    config, straight, stopped = config_of(init, tables, teacher), str(tmp_path / "straight"), str(tmp_path / "stopped")
    FinetuningRuns(config).one(straight)
    assert all(
        line["loss"] == pytest.approx(line["labels_loss"] + line["teacher_loss"])
        for line in figures(straight)
        if "labels_loss" in line
    )
    asked = []
    with monkeypatch.context() as patch:
        patch.setattr(StopRequest, "reason", lambda self: asked.append(1) or ("a test" if len(asked) == 4 else None))
        with pytest.raises(RunStopped):
            FinetuningRuns(config).one(stopped)
    monkeypatch.setattr(teachers, "FinetunedModel", None)
    FinetuningRuns(config).one(stopped)
    assert figures(stopped) == figures(straight)
    other = weights(straight)
    for name, value in weights(stopped).items():
        np.testing.assert_array_equal(other[name], value, name)


def test_a_teacher_whose_weights_have_changed_is_another(init, tables, tmp_path):
    """The answers in the run's folder are then no longer its own."""
    teacher, run = write_teacher(tmp_path / "teacher"), str(tmp_path / "run")
    FinetuningRuns(config_of(init, tables, teacher)).one(run)
    shutil.rmtree(teacher)
    model = BertForSequenceClassification(open_model_folder(init).config, 2)
    head = ClassificationConfig(("negative", "positive"))
    write_model_folder(teacher, model, VOCABULARY, lower_case=True, head=head, task={"task": "text"})
    with pytest.raises(UserError, match="holds a run on other data .teacher, .*SHA-256"):
        FinetuningRuns(config_of(init, tables, teacher, **{"training.epochs": 2.0})).one(run)


def test_labels_are_matched_by_name_and_noise_is_the_same(init, tables, teacher, tmp_path):
    """Labels in the teacher's order would teach the opposite, and answers to other noisy texts something else."""
    backwards = write_teacher(tmp_path / "backwards", ("positive", "negative"))
    found = []
    for model in (teacher, backwards):
        config = config_of(init, tables, model, **{"noise.kinds": ["typo=0.3"]})
        problem = open_problem(config, model_tokenizer(open_model_folder(init)))
        rows, _ = problem.training_rows(1)
        taught = Teacher(config, problem).taught(rows, 1, RunFolder(str(tmp_path / "run")), make_strategy("one"))
        assert "teacher_logits" not in rows.extra  # These rows are the problem's, for other runs too.
        found.append(taught.extra["teacher_logits"])
    np.testing.assert_array_equal(found[0][:, ::-1], found[1])
    own = FinetunedModel(teacher, {key[5:]: path for key, path in tables.items()})
    answers, _ = own.evaluate.answers("train")
    np.testing.assert_allclose(found[0][:48], answers, atol=1e-5)
    assert found[0].shape == (96, 2) and np.abs(found[0][48:] - answers).max() > 0.01


def test_a_teacher_reads_as_many_examples_at_once_as_a_step(init, tables, teacher, tmp_path, monkeypatch):
    """A batch that is computed in slices may not fit in memory."""
    sizes = []
    monkeypatch.setattr(teachers, "FinetunedModel", lambda *given: sizes.append(given[-1]) or FinetunedModel(*given))
    config = config_of(init, tables, teacher, **{"training.accumulation": 4})
    problem = open_problem(config, model_tokenizer(open_model_folder(init)))
    rows, _ = problem.training_rows(1)
    Teacher(config, problem).taught(rows, 1, RunFolder(str(tmp_path / "run")), make_strategy("one"))
    assert sizes == [2]


def test_labels_of_a_benchmark_are_matched_by_name_once(init, glue, tmp_path):
    """The problem already puts the answers into the task's order; reordering them again would swap them."""
    found = []
    for labels in (("negative", "positive"), ("positive", "negative")):
        teacher = write_teacher(tmp_path / labels[0], labels, task="sst2")
        config = finetune_config(init, "sst2", **{"data.folder": str(glue), "teacher.model": teacher})
        problem = open_problem(config, model_tokenizer(open_model_folder(init)))
        run, strategy = RunFolder(str(tmp_path / "run")), make_strategy("one")
        taught = Teacher(config, problem).taught(problem.training_rows(1)[0], 1, run, strategy)
        found.append(taught.extra["teacher_logits"])
    np.testing.assert_array_equal(found[0][:, ::-1], found[1])


def test_words_are_learned_from_a_teacher_of_other_pieces(init, tmp_path):
    """Its logits at a word's first piece belong at that word's first piece, wherever that is in the student's row."""
    random = np.random.default_rng(0)
    sentences = [[WORDS[number] for number in random.integers(0, 55, random.integers(2, 5))] for _ in range(24)]
    lines = ("".join(f"{word} {'AB'[word in WORDS[:6]]}\n" for word in sentence) for sentence in sentences)
    (tmp_path / "words.txt").write_text("\n".join(lines), encoding="utf-8")
    letters = sorted(set("".join(WORDS)))
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)])
    model = BertForTokenClassification(without_dropout(vocab_size=len(vocabulary), max_position_embeddings=32), 2)
    random_weights(model, scale=0.5)
    task = {"task": "tokens", "max_length": 24, "word": 0, "label": 1}
    head = TokenClassificationConfig(("B", "A"))
    write_model_folder(str(tmp_path / "tagger"), model, vocabulary, lower_case=True, head=head, task=task)
    table = {"data.train": str(tmp_path / "words.txt"), "data.dev": str(tmp_path / "words.txt")}
    changes = {"training.epochs": 1.0, "teacher.model": str(tmp_path / "tagger")}
    config = finetune_config(init, "tokens", **table, **changes)
    FinetuningRuns(config).one(str(tmp_path / "run"))
    problem = open_problem(config, model_tokenizer(open_model_folder(init)))
    assert problem.head.labels == ("A", "B")
    rows, _ = problem.training_rows(1)
    taught = Teacher(config, problem).taught(rows, 1, RunFolder(str(tmp_path / "run")), make_strategy("one"))
    tokens = taught.token_files["teacher_logits"].read(tf.range(len(rows.ids), dtype=tf.int64)).numpy()[:, 0]
    own = FinetunedModel(str(tmp_path / "tagger"), {key[5:]: path for key, path in table.items()})
    outputs, _ = own.evaluate.outputs(own.problem.rows("train"))
    read = own.problem.layout("train").words
    expected = np.concatenate(outputs["logits"])[read.places][:, ::-1]
    first = rows.token_extra["labels"] >= 0
    np.testing.assert_allclose(tokens[first], expected, atol=1e-5)
    assert len(own.problem.rows("train").ids) > len(rows.ids) and not tokens[~first].any()
    with pytest.raises(
        UserError, match="teacher.model: needs no CRF and no frozen features. Received: a BertCrfTagger"
    ):
        FinetuningRuns(finetune_config(init, "tokens", **table, **changes, **{"head.crf": True}))


def test_choices_are_learned_however_many_an_example_has(init, tmp_path):
    random = np.random.default_rng(0)
    rows = [
        {"context": "w1 w2", "choices": [" ".join(random.choice(WORDS, 3)) for _ in range(2 + number % 2)], "label": 1}
        for number in range(16)
    ]
    table = {f"data.{split}": str(tmp_path / "rows.jsonl") for split in ("train", "dev")}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    model = BertForMultipleChoice(without_dropout(max_position_embeddings=32))
    random_weights(model)
    teacher, task = str(tmp_path / "teacher"), {"task": "choice", "max_length": 24}
    write_model_folder(teacher, model, VOCABULARY, lower_case=True, head=MultipleChoiceConfig(), task=task)
    changes = {"training.epochs": 1.0, "training.log_every": 1, "teacher.model": teacher}
    FinetuningRuns(finetune_config(init, "choice", **table, **changes)).one(str(tmp_path / "run"))
    losses = [line["teacher_loss"] for line in figures(tmp_path / "run") if "teacher_loss" in line]
    assert len(losses) == 2 and np.isfinite(losses).all() and min(losses) > 0


def test_refusals(init, tables, teacher, tmp_path):
    """In one line, before anything is computed."""
    others = write_teacher(tmp_path / "labels", ("bad", "good"))
    number = write_teacher(tmp_path / "number", ("score",), REGRESSION)
    sst2 = write_teacher(tmp_path / "sst2", task="sst2")
    for model, message in (
        (
            init,
            "teacher.model: needs a model fine-tuned on text. Received: .*, which has no head for a task. Fine-tune",
        ),
        (others, "teacher.model: needs the labels of text, negative, positive. Received: .*, with bad, good"),
        (number, "teacher.model: needs the problem_type single_label_classification, as text. Received: .* regression"),
        (sst2, "teacher.model: needs a model fine-tuned on text. Received: .*, of sst2"),
        (str(tmp_path / "none"), "none: needs a model folder"),
    ):
        with pytest.raises(UserError, match=message):
            FinetuningRuns(config_of(init, tables, model))
    numbers = config_of(init, tables, number, **{"data.kind": REGRESSION, "teacher.temperature": 3.0})
    with pytest.raises(UserError, match="teacher.temperature: needs answers with probabilities. Received: 3 for text"):
        FinetuningRuns(numbers)
    squad = FinetuneConfig.from_mapping({"task": "squad", "teacher": {"model": teacher}})
    with pytest.raises(UserError, match="teacher.model: needs a task that classifies .* Received: squad. Leave it out"):
        open_problem(squad, None)
    with pytest.raises(UserError, match="teacher.weight: needs teacher.model, the model to learn from. Received: 0.2"):
        FinetuneConfig.from_mapping({"task": "text", "teacher": {"weight": 0.2}})
