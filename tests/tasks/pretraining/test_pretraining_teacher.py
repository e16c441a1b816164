"""Pretraining with a teacher: its loss, resumed runs, an ordinary model in the end, and refusals."""

import dataclasses
import os

import numpy as np
import pytest
import scipy.special
import tensorflow as tf
from finetuning import write_tiny_bert
from pretraining import MODEL, WITHOUT_DROPOUT, assert_resumes_like, losses_on, metrics, recipe
from served import BYTE_VOCABULARY
from tiny import pretraining_batch, random_weights, without_dropout

import keras_bert
from keras_bert.api.pretraining import pretraining_recipe
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.recipes import find_config
from keras_bert.config.teacher import PretrainingTeacherConfig
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_json
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.electra.kind import ElectraConfig
from keras_bert.models.electra.pretraining import ElectraForPreTraining
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.models.roberta.kind import RobertaConfig
from keras_bert.models.sizes import training_flops, unread_flops
from keras_bert.models.tensor_names import model_variables
from keras_bert.tasks.pretraining import run as pretraining_run
from keras_bert.tasks.pretraining.engine import phase_flops
from keras_bert.tasks.pretraining.run import Pretraining, pretrain
from keras_bert.tasks.pretraining.teacher import PretrainingTeacher, TaughtObjective
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.tokenizers import make_tokenizer
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.training.accumulation import Companion
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.run_folder import RunFolder

SIZE = 40  # A size that no other layer has.


@pytest.fixture(scope="module")
def alone(corpus, tmp_path_factory):
    """A run without a teacher."""
    run = RunFolder(str(tmp_path_factory.mktemp("runs") / "alone"))
    pretrain(recipe(corpus), run)
    return run


def write_teacher(folder, vocabulary, cls=BertForPreTraining, kind=BertConfig, seed=5, **changes):
    model = cls(kind(**{**MODEL, "hidden_size": SIZE, **changes}))
    random_weights(model, seed)
    write_model_folder(str(folder), model, vocabulary, lower_case=True)
    return str(folder)


@pytest.fixture(scope="module")
def vocabulary(alone):
    return Vocabulary.from_file(os.path.join(alone.model, "vocab.txt"))


@pytest.fixture(scope="module")
def teacher(vocabulary, tmp_path_factory):
    return write_teacher(tmp_path_factory.mktemp("teacher") / "model", vocabulary)


def taught(corpus, teacher, **changes):
    vocabulary = os.path.join(teacher, "vocab.txt")
    return recipe(corpus, **{"teacher.model": teacher, "vocabulary.file": vocabulary, **changes})


def weights(run):
    return {name.attribute: variable.numpy() for name, variable in model_variables(keras_bert.load(run.path).model)}


@pytest.mark.parametrize("match", ["states", "logits"])
def test_the_loss_is_that_of_the_states_and_logits_in_numpy(match):
    """Padding and unused predictions do not count, and the teacher gets no gradient."""
    config = without_dropout()
    student = BertForPreTraining(config, mapped_size=SIZE if match == "states" else None)
    teacher = BertForPreTraining(without_dropout(hidden_size=SIZE, vocab_size=62))
    random_weights(student)
    random_weights(teacher, seed=1)
    batch = {name: tf.constant(value) for name, value in pretraining_batch(config).items()}
    own = PretrainingObjective(mask_id=4)
    settings = PretrainingTeacherConfig("t", 0.7, match=match, **({"temperature": 3.0} if match == "logits" else {}))
    objective = TaughtObjective(own, teacher if match == "logits" else teacher.encoder, settings)
    with tf.GradientTape() as tape:
        outputs = student(batch)
        sums, counts = objective.sums(outputs, batch), objective.counts(batch)
        loss = sums["teacher"]["loss"] / counts["teacher"]
    inputs = {name: batch[name] for name in ("input_word_ids", "input_mask", "input_type_ids")}
    if match == "states":
        states = student.encoder(inputs)["sequence_output"].numpy()
        kernel, bias = (variable.numpy() for variable in student.state_map.weights)
        target = teacher.encoder(inputs)["sequence_output"].numpy()
        target = (target - target.mean(-1, keepdims=True)) / np.sqrt(target.var(-1, keepdims=True) + 1e-6)
        distances, seen = ((states @ kernel + bias - target) ** 2).mean(-1), batch["input_mask"].numpy()
    else:
        positions = batch["masked_lm_positions"].numpy()[..., None]
        logits = [np.take_along_axis(one(inputs)["mlm_logits"].numpy(), positions, 1) for one in (student, teacher)]
        own_shares, shares = (scipy.special.softmax(one[..., :60] / 3.0, -1) for one in logits)
        distances, seen = 9 * scipy.special.rel_entr(shares, own_shares).sum(-1), batch["masked_lm_weights"].numpy()
    assert float(loss) == pytest.approx(0.7 * (distances * seen).sum() / seen.sum(), rel=1e-4)
    assert {name: sums[name] for name in own.terms}.keys() == {"mlm", "nsp"} and objective.terms[-1] == "teacher"
    assert all(gradient is None for gradient in tape.gradient(loss, teacher.weights))


@pytest.mark.slow
def test_with_weight_0_it_is_the_run_without_a_teacher(corpus, alone, teacher, tmp_path):
    """Bit for bit."""
    run = RunFolder(str(tmp_path / "run"))
    pretrain(taught(corpus, teacher, **{"teacher.weight": 0.0}), run)
    assert metrics(run) == metrics(alone)
    expected = weights(alone)
    for name, value in weights(run).items():
        np.testing.assert_array_equal(value, expected[name], name)


@pytest.mark.slow
def test_a_teacher_changes_the_loss_alone(corpus, teacher, tmp_path, monkeypatch):
    """The initial weights and the batches stay; neither checkpoints nor the model's folder hold the teacher.

    Its FLOPs count: without them a run that mostly asks a teacher would seem to leave the device idle.

    Dropout differs: without a teacher, the last block computes only the states that are read.
    """
    alone, run = RunFolder(str(tmp_path / "alone")), RunFolder(str(tmp_path / "run"))
    monkeypatch.setattr(Pretraining, "matmul_peak", lambda self: 1.0)
    untaught = recipe(corpus, **WITHOUT_DROPOUT)
    config = taught(corpus, teacher, **{**WITHOUT_DROPOUT, "teacher.weight": 1e-12})
    pretrain(untaught, alone)
    pretrain(config, run)
    model, others = open_model_folder(run.path).config, open_model_folder(teacher).config
    for folder, flops in ((alone, phase_flops(untaught, 0, model)), (run, phase_flops(config, 0, model, others))):
        lines = [line for line in read_metrics(folder.metrics_file) if "flops_utilization" in line]
        assert lines and all(
            line["flops_utilization"] == pytest.approx(flops * line["examples_per_second"]) for line in lines
        )
    for one, other in zip(metrics(alone), metrics(run), strict=True):
        assert {name: pytest.approx(value, rel=1e-3) for name, value in one.items()}.items() <= other.items()
    for name in ("config.json", "tokenizer_config.json", "vocab.txt"):
        files = (os.path.join(folder.model, name) for folder in (run, alone))
        ours, theirs = (open(file, encoding="utf-8").read() for file in files)
        assert ours == theirs
    stored = [open_model_folder(folder.path).tensor_shapes() for folder in (run, alone)]
    assert stored[0] == stored[1]
    checkpoint = os.path.join(run.checkpoints, "step-000000012", "checkpoint")
    shapes = [tuple(shape) for _, shape in tf.train.list_variables(checkpoint)]
    assert (MODEL["hidden_size"], SIZE) in shapes and (SIZE, SIZE) not in shapes


def test_flops_of_a_teacher_are_those_of_its_forward_pass(corpus, teacher):
    """All states of its encoder; for logits, of its last block only what [CLS] and the predictions need."""
    others = open_model_folder(teacher).config
    for match, expected in (
        ("states", training_flops(others, 32, 0) // 3),
        ("logits", (training_flops(others, 32, 5) - unread_flops(others, 32, 6)) // 3),
    ):
        config = taught(corpus, teacher, **{"teacher.match": match})
        assert phase_flops(config, 0, teacher=others) - phase_flops(config, 0) == expected


def companions_of(config, run, monkeypatch):
    """The models that are counted beside the trained one when a run chooses its slices."""
    counted = []
    monkeypatch.setattr(pretraining_run, "choose_accumulation", lambda *of, companions: counted.extend(companions) or 1)
    Pretraining(config, run)._with_slices(config.model)
    return counted


def test_the_memory_of_a_teacher_or_a_generator_is_counted(corpus, teacher, tmp_path, monkeypatch):
    of_teacher = open_model_folder(teacher).config
    for match in ("states", "logits"):
        config, run = taught(corpus, teacher, **{"teacher.match": match}), RunFolder(str(tmp_path / match))
        assert companions_of(config, run, monkeypatch) == [Companion(of_teacher, False, match == "logits")]
    changes = {"model": {**MODEL, "model_type": "electra"}, "objective": {"tokens": "replaced", "pair": "none"}}
    config, run = recipe(corpus, **changes), RunFolder(str(tmp_path / "replaced"))
    assert companions_of(config, run, monkeypatch) == [Companion(config.model.generator(0.25), is_trained=True)]
    assert not companions_of(recipe(corpus), RunFolder(str(tmp_path / "alone")), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("match", ["states", "logits"])
def test_a_run_that_is_stopped_goes_on_to_the_same_end_also_in_slices(corpus, teacher, tmp_path, monkeypatch, match):
    off = {**WITHOUT_DROPOUT, "teacher.match": match}
    straight, stopped, sliced = (RunFolder(str(tmp_path / name)) for name in ("straight", "stopped", "sliced"))
    config = taught(corpus, teacher, **off)
    assert_resumes_like((straight, pretrain(config, straight)), config, stopped, monkeypatch, stop=10, checkpoint=9)
    lines = [line for line in metrics(straight) if "teacher_loss" in line]
    assert lines[-1]["teacher_loss"] < lines[0]["teacher_loss"]
    first = lines[0]
    assert first["loss"] == pytest.approx(first["mlm_loss"] + first["nsp_loss"] + first["teacher_loss"])
    in_slices = taught(corpus, teacher, **off, **{"training.accumulation": 2, "training.steps": 6})
    pretrain(in_slices, sliced)
    assert metrics(sliced)[0]["teacher_loss"] == pytest.approx(first["teacher_loss"], rel=1e-3)


@pytest.mark.slow
def test_replicas_and_xla_give_the_losses_of_one_device(corpus, teacher, tmp_path, monkeypatch, mirrored_strategy):
    """Each replica has the teacher's weights; dropout is off."""
    changes = {**WITHOUT_DROPOUT, "training.steps": 6}

    def losses(name, strategy, compiled):
        config = taught(corpus, teacher, **changes, **{"training.jit_compile": compiled})
        return losses_on(strategy, config, tmp_path / name, monkeypatch, "teacher_loss")

    one = tf.distribute.OneDeviceStrategy("CPU:0")
    plain = losses("one", one, False)
    np.testing.assert_allclose(losses("xla", one, True), plain, rtol=1e-4)
    np.testing.assert_allclose(losses("mirrored", mirrored_strategy, False), plain, rtol=1e-4)


def test_refusals(corpus, teacher, vocabulary, tmp_path):
    """In one line, before anything is trained."""
    others = write_tiny_bert(tmp_path / "others")
    short = write_teacher(tmp_path / "short", vocabulary, max_position_embeddings=16)
    encoder = write_teacher(tmp_path / "encoder", vocabulary, BertEncoder)
    cased = str(tmp_path / "cased")
    write_model_folder(cased, keras_bert.load(teacher).model, vocabulary, lower_case=False)
    for model, changes, message in (
        (others, {"vocabulary.file": None}, "needs the run's vocabulary .*Received: .*others, with .*Give --set vocab"),
        (cased, {}, "needs the run's vocabulary.lower_case .True"),
        (short, {}, "needs at least 32 positions, as phases have. Received: .*short, with 16"),
        (encoder, {"teacher.match": "logits"}, "needs a masked LM head for teacher.match logits. Received: .*encoder"),
    ):
        with pytest.raises(UserError, match=f"teacher.model: {message}"):
            pretrain(taught(corpus, model, **changes), RunFolder(str(tmp_path / "run")))
    electra = write_teacher(tmp_path / "electra", vocabulary, ElectraForPreTraining, ElectraConfig)
    with pytest.raises(
        UserError, match="teacher.model: needs a model of masked tokens. Received: .*, of replaced ones"
    ):
        pretrain(taught(corpus, electra), RunFolder(str(tmp_path / "run")))
    next_tokens = {"model.attention": "causal", "objective.tokens": "next", "objective.pair": "none"}
    with pytest.raises(
        UserError, match="teacher.model: needs masked tokens to predict in all phases. Received: 'next'"
    ):
        taught(corpus, teacher, **next_tokens)
    with pytest.raises(UserError, match="teacher.temperature: needs teacher.match logits, which it divides"):
        taught(corpus, teacher, **{"teacher.temperature": 3.0})


def test_a_teacher_that_reads_the_beginning_of_a_text_otherwise_is_refused(corpus, tmp_path):
    """The model would learn from answers to other pieces."""
    model = BertEncoder(RobertaConfig(**{**MODEL, "vocab_size": len(BYTE_VOCABULARY)}))
    random_weights(model)
    write_model_folder(str(tmp_path), model, BYTE_VOCABULARY, lower_case=False, prefix_space=False)
    own = {"model_type": "roberta", "vocab_size": len(BYTE_VOCABULARY)}
    config = recipe(corpus, **{"model": {**MODEL, **own}, "objective.pair": "none", "teacher.model": str(tmp_path)})
    teacher = PretrainingTeacher(config)
    settings = TokenizerSettings(lower_case=False, prefix_space=False)
    teacher.require_vocabulary(make_tokenizer(BYTE_VOCABULARY, settings))
    spaced = dataclasses.replace(settings, prefix_space=True)
    with pytest.raises(UserError, match="needs the run's vocabulary.prefix_space .True.. Received: .*, with False"):
        teacher.require_vocabulary(make_tokenizer(BYTE_VOCABULARY, spaced))


@pytest.mark.parametrize("match", ["states", "logits"])
def test_a_distilbert_learns_from_a_bert(corpus, teacher, tmp_path, match):
    """A teacher of another kind reads the same rows."""
    run, distilbert = RunFolder(str(tmp_path / "run")), {**MODEL, "model_type": "distilbert", "type_vocab_size": 1}
    changes = {"model": distilbert, "objective.pair": "none", "teacher.match": match, "training.steps": 2}
    pretrain(taught(corpus, teacher, **changes), run)
    assert all(0 < line["teacher_loss"] < 100 for line in metrics(run) if "teacher_loss" in line)
    assert read_json(os.path.join(run.model, "config.json"))["model_type"] == "distilbert"


def test_another_teacher_of_the_same_name_does_not_go_on(corpus, vocabulary, tmp_path):
    teacher, run = write_teacher(tmp_path / "teacher", vocabulary), RunFolder(str(tmp_path / "run"))
    pretrain(taught(corpus, teacher, **{"training.steps": 3}), run)
    write_teacher(tmp_path / "teacher", vocabulary, seed=6)
    with pytest.raises(UserError, match="holds a run on other data .teacher, .*SHA-256"):
        pretrain(taught(corpus, teacher, **{"training.steps": 6}), run)


def test_the_teachers_vocabulary_is_the_default(teacher):
    """A learned vocabulary would be refused, but only after the text has been prepared."""
    config = pretraining_recipe(find_config("pretrain", "demo"), None, None, None, {"teacher.model": teacher})
    assert config.vocabulary.file == os.path.join(teacher, "vocab.txt") and config.model.vocab_size == 120
