"""Training from Python: the command's numbers, resuming, callbacks, and what a run gives."""

import dataclasses
import json

import keras
import numpy as np
import pandas
import pytest
from command_line import output_of
from corpus import write_corpus
from finetuning import write_tiny_bert
from pretraining import metrics
from served import write_served

import keras_bert
from keras_bert.api.finetuning import finetuning_recipe
from keras_bert.api.keywords import callbacks_of, keyword_settings, length_settings
from keras_bert.api.pretraining import phase_settings
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.config.finetuning import FinetuneConfig, TaskDataConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.reading import FIELD
from keras_bert.config.recipes import find_config
from keras_bert.core.errors import UserError
from keras_bert.tasks.finetuned_model import finetune_config
from keras_bert.training.run_folder import RunFolder

MODEL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
SETTINGS = {
    "model": {**MODEL, "vocab_size": 120},
    "optimizer.warmup_steps": 2,
    "training.jit_compile": False,
    "training.log_every": 2,
    "training.evaluate_every": 4,
    "initialization": "paper",
    "examples": [],
}
REVIEWS = [
    {"review": f"{word} film, number {n}", "stars": stars}
    for n in range(8)
    for word, stars in (("good", 5), ("bad", 1))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def text(folder):
    return write_corpus(folder / "corpus.txt", 40)


@pytest.fixture(scope="module")
def pretrained(folder, text):
    return keras_bert.pretrain(
        text, "five_minutes", output=folder / "py", steps=6, batch_size=8, max_length=16, **SETTINGS
    )


@pytest.fixture(scope="module")
def finetuned(folder, pretrained):
    return keras_bert.finetune(
        pretrained,
        train=REVIEWS,
        dev=REVIEWS[:6],
        text="review",
        label="stars",
        output=folder / "stars",
        epochs=2,
        batch_size=4,
        max_length=16,
        learning_rate=1e-3,
    )


@pytest.mark.slow
def test_the_command_trains_the_same_numbers(folder, text, pretrained):
    """Keywords that reach other settings, or other defaults, would change the training without a word."""
    by_key = keyword_settings(PretrainConfig, SETTINGS)
    flags = [f"--set={key}={json.dumps(value)}" for key, value in by_key.items()]
    options = ["--config", "five_minutes", "--data", text, "--output", str(folder / "command"), "--steps", "6"]
    output_of("pretrain", *options, "--batch-size", "8", "--max-length", "16", *flags)
    assert metrics(RunFolder(str(folder / "command"))) == metrics(RunFolder(pretrained.path))


@pytest.mark.slow
def test_documents_in_python_are_those_of_a_file(folder, pretrained, text):
    with open(text, encoding="utf-8") as stream:
        documents = [document for document in stream.read().split("\n\n") if document.strip()]
    run = keras_bert.pretrain(
        documents, "five_minutes", output=folder / "given", steps=6, batch_size=8, max_length=16, **SETTINGS
    )
    assert metrics(RunFolder(run.path)) == metrics(RunFolder(pretrained.path))


@pytest.mark.slow
def test_called_again_it_returns_the_finished_run_and_other_settings_are_refused(pretrained, text):
    options = {"output": pretrained.path, "batch_size": 8, "max_length": 16, **SETTINGS}
    assert keras_bert.pretrain(text, "five_minutes", steps=6, **options).results == pretrained.results
    with pytest.raises(UserError, match="holds a run with other settings .optimizer.learning_rate"):
        keras_bert.pretrain(text, "five_minutes", steps=6, learning_rate=0.5, **options)
    longer = keras_bert.pretrain(text, "five_minutes", steps=8, **options)
    assert longer.results["steps"] == 8


def test_a_missing_file_is_noticed_before_a_model_is_looked_for():
    """Half a gigabyte used to come from the hub first."""
    with pytest.raises(UserError, match="mine.csv: needs to exist, for the split 'dev' of text."):
        keras_bert.finetune("hf:nobody/none", train=REVIEWS, dev="mine.csv")
    with pytest.raises(UserError, match="glue: needs the data of sst2. Received: no such folder."):
        keras_bert.finetune("hf:nobody/none", "sst2", data_dir="glue")
    with pytest.raises(UserError, match="No file matches 'mine.txt'"):
        keras_bert.pretrain("mine.txt", init="hf:nobody/none")


def test_evaluating_names_a_missing_file_before_the_weights_are_read(tmp_path, monkeypatch):
    folder = write_served(tmp_path / "model", "single")
    monkeypatch.setattr("keras_bert.tasks.finetuned_model.load_folder", None)
    with pytest.raises(UserError, match="mine.csv: needs to exist, for the split 'dev' of text."):
        keras_bert.FinetuningRun(folder).evaluate("mine.csv")


def test_evaluating_what_is_no_run_writes_nothing(tmp_path):
    """A mistyped name would become a folder with the examples, or below a file a NotADirectoryError."""
    (tmp_path / "file").write_text("text")
    for name in ("absent", "file"):
        with pytest.raises(UserError, match="needs the folder of a run. Received: no folder"):
            keras_bert.FinetuningRun(tmp_path / name).evaluate(REVIEWS)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_evaluations_at_the_same_time_have_their_own_examples(tmp_path, monkeypatch):
    """In a shared file of the run's folder, the first would be scored on what the second wrote."""
    run, others = keras_bert.FinetuningRun(write_tiny_bert(tmp_path / "bert")), [REVIEWS[:2]]

    class Counting:
        def __init__(self, folder, changes):
            self.path = changes["dev"]
            self.other = run.evaluate(others.pop())["rows"] if others else None

        def splits(self, name):
            return [name]

        def evaluate(self, split):
            with open(self.path, encoding="utf-8") as stream:
                return {"rows": len(stream.readlines()), "other": self.other}

    monkeypatch.setattr("keras_bert.tasks.finetuned_model.FinetunedModel", Counting)
    files = sorted(path.name for path in (tmp_path / "bert").iterdir())
    assert run.evaluate(iter(REVIEWS)) == {"rows": len(REVIEWS), "other": 2}
    assert sorted(path.name for path in (tmp_path / "bert").iterdir()) == files


@pytest.mark.slow
def test_what_a_fine_tuned_run_gives(finetuned, tmp_path):
    assert finetuned.results["splits"]["dev"]["accuracy"] == finetuned.evaluate()["accuracy"]
    assert finetuned.evaluate(REVIEWS[:6])["loss"] == pytest.approx(finetuned.evaluate()["loss"], rel=1e-5)
    renamed = [{"text": row["review"], "stars": row["stars"]} for row in REVIEWS[:6]]
    assert finetuned.evaluate(renamed, text="text")["loss"] == pytest.approx(finetuned.evaluate()["loss"], rel=1e-5)
    history = finetuned.history
    assert list(history[history.eval_loss.notna()].step) == [4, 8]
    assert len(finetuned.plot().axes[0].lines) == 2
    (answer,) = finetuned.predict(["good film"])
    assert answer.label in ("1", "5") and sum(answer.probabilities.values()) == pytest.approx(1)
    assert finetuned.export(tmp_path / "served") == str(tmp_path / "served" / "1")
    assert repr(finetuned) == f"FinetuningRun({finetuned.path!r})"


@pytest.mark.slow
def test_seeds_leave_the_best_model(folder, pretrained):
    run = keras_bert.finetune(
        pretrained,
        train=REVIEWS,
        dev=REVIEWS[:6],
        text="review",
        label="stars",
        output=folder / "seeds",
        seeds=np.arange(1, 3),
        epochs=1,
        batch_size=8,
        max_length=16,
    )
    assert run.results["seeds"] == [1, 2] and run.model.head.labels == ("1", "5")
    best = metrics(RunFolder(str(folder / "seeds" / f"seed-{run.results['best_seed']}")))
    assert list(run.history.step) == [line["step"] for line in best]


def test_a_single_validation_shows_in_the_plot(tmp_path):
    """It is a point: a line through it alone has no length."""
    lines = [{"step": step, "loss": 2.0 / step} for step in range(1, 61)]
    text = "".join(json.dumps(line) + "\n" for line in [*lines, {"step": 60, "eval_loss": 1.0}])
    (tmp_path / "metrics.jsonl").write_text(text)
    training, validation = keras_bert.Run(tmp_path).plot().axes[0].lines
    assert (training.get_marker(), validation.get_marker()) == ("None", ".")


class Recorder(keras.callbacks.Callback):
    def __init__(self, stop_at=None):
        super().__init__()
        self.called, self.stop_at = [], stop_at

    def on_train_begin(self, logs=None):
        self.called.append((self.params["epochs"], self.params["steps"]))

    def on_train_batch_end(self, batch, logs=None):
        self.called.append(batch)
        self.model.stop_training = batch + 1 == self.stop_at

    def on_epoch_end(self, epoch, logs=None):
        self.called.append((epoch, round(logs["val_loss"], 3)))

    def on_train_end(self, logs=None):
        self.called.append("end")


@pytest.mark.slow
def test_callbacks_see_the_run_and_end_it(folder, pretrained):
    """A run that a callback ends still validates, saves and writes its results."""
    options = {"train": REVIEWS, "dev": REVIEWS[:6], "text": "review", "label": "stars", "epochs": 3, "batch_size": 4}
    recorder = Recorder(stop_at=6)
    run = keras_bert.finetune(pretrained, output=folder / "stopped", max_length=16, callbacks=[recorder], **options)
    evaluations = [round(loss, 3) for loss in run.history.eval_loss.dropna()]
    assert recorder.called == [(3, 12), 0, 1, 2, 3, (0, evaluations[0]), 4, 5, (1, evaluations[1]), "end"]
    assert run.results["steps"] == 6
    patient = keras.callbacks.EarlyStopping("val_loss", patience=1, min_delta=100.0)
    run = keras_bert.finetune(pretrained, output=folder / "early", max_length=16, callbacks=[patient], **options)
    assert run.results["steps"] == 8 and np.isfinite(run.results["splits"]["dev"]["loss"])


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({"steps": 5, "seed": 2}, {"training.steps": 5, "training.seed": 2}),
        ({"masking": {"unit": "span"}, "optimizer.name": "lamb"}, {"masking.unit": "span", "optimizer.name": "lamb"}),
        ({"optimizer": {"rates": {"embeddings": 0.1}}}, {"optimizer.rates": {"embeddings": 0.1}}),
        ({"initialization": "corpus", "phases": [{}]}, {"initialization": "corpus", "phases": [{}]}),
        ({"phases.1": {"share": 0.1}}, {"phases.1.share": 0.1}),
        ({"model": {"extends": "tiny", "vocab_size": 9}}, {"model": {"extends": "tiny", "vocab_size": 9}}),
        ({"data": {"filters": {"extends": "c4"}}}, {"data.filters": {"extends": "c4"}}),
    ],
)
def test_keywords_name_settings(keywords, expected):
    assert keyword_settings(PretrainConfig, keywords) == expected


def test_names_that_are_none_or_several_are_refused():
    with pytest.raises(UserError, match="lerning_rate: no such argument or setting. The nearest is learning_rate "):
        keyword_settings(PretrainConfig, {"lerning_rate": 1})
    with pytest.raises(UserError, match="kind: needs its section. .* data.kind and features.kind"):
        keyword_settings(FinetuneConfig, {"kind": 1})
    with pytest.raises(UserError, match="steps: needs to be the only length of the run. Received: minutes too"):
        length_settings({"training.steps": 1, "training.minutes": 1})
    assert length_settings({"training.epochs": 1}) == {"training.minutes": 0.0, "training.steps": 0}


def test_a_setting_that_is_given_twice_is_refused(tmp_path):
    """Otherwise one of the two values would be ignored without a word."""
    bert, options = write_tiny_bert(tmp_path / "bert"), {"train": REVIEWS, "output": tmp_path / "run"}
    with pytest.raises(UserError, match="training.steps: needs to be given once. Received: 5 and 6. Leave out one."):
        keyword_settings(FinetuneConfig, {"steps": 5, "training": {"steps": 6}})
    for changes, message in (
        ({"label": "stars", "data": {"label": "review"}}, "data.label: .* Received: 'review' and 'stars'"),
        ({"seeds": [1, 2], "seed": 3}, r"training.seed: .* Received: 3 and \[1, 2\]"),
        ({"init": "other"}, "init: .* Received: 'other' and '.*bert'"),
    ):
        with pytest.raises(UserError, match=message):
            keras_bert.finetune(bert, **options, **changes)
    with pytest.raises(UserError, match="data.text: .* Received: 'a' and 'b'"):
        keras_bert.pretrain(REVIEWS, "five_minutes", text="b", output=tmp_path / "run", **{"data.text": "a"})
    with pytest.raises(UserError, match="phases.0.batch_size: .* Received: 8 and 16"):
        keras_bert.pretrain(REVIEWS, output=tmp_path / "run", batch_size=16, **{"phases.0.batch_size": 8})
    assert not (tmp_path / "run").exists()


def test_what_is_no_path_is_refused_in_one_line(tmp_path):
    """It must not end in a TypeError."""
    bert, train, pretrain = write_tiny_bert(tmp_path / "bert"), keras_bert.finetune, keras_bert.pretrain
    for name, call in (
        ("model", lambda: train(5)),
        ("init", lambda: train(init=5)),
        ("output", lambda: train(bert, output=5)),
        ("data_dir", lambda: train(bert, data_dir=5, output=tmp_path / "run")),
        ("init", lambda: pretrain(init=5)),
        ("output", lambda: pretrain(output=5)),
    ):
        with pytest.raises(UserError, match=f"^{name}: needs text. Received: 5."):
            call()


def test_names_and_callbacks_of_another_type_are_refused_in_one_line(tmp_path):
    """They must not end in a TypeError, and callbacks not once the data are prepared."""
    bert = write_tiny_bert(tmp_path / "bert")
    rows = {"train": REVIEWS, "text": "review", "label": "stars", "output": tmp_path / "run", "max_length": 16}
    for name in ("task", "kind", "recipe"):
        with pytest.raises(UserError, match=rf"^{name}: needs text. Received: \['sst2'\]."):
            keras_bert.finetune(bert, **{name: ["sst2"]})
    for wrong in (5, [5]):
        with pytest.raises(UserError, match="^callbacks: need to be Keras callbacks. Received: 5."):
            keras_bert.finetune(bert, callbacks=wrong, **rows)
        with pytest.raises(UserError, match="^callbacks: need to be Keras callbacks. Received: 5."):
            keras_bert.pretrain(["A text."] * 9, output=tmp_path / "run", callbacks=wrong)
    assert not (tmp_path / "run").exists()
    alone = keras.callbacks.EarlyStopping()
    assert callbacks_of(alone) == callbacks_of(iter([alone])) == [alone]


def test_a_recipe_may_be_a_path(tmp_path):
    (tmp_path / "mine.yaml").write_text("task: text\nsteps: 5\n")
    for train in (keras_bert.pretrain, keras_bert.finetune):
        with pytest.raises(UserError, match="^(steps|task): no such setting"):
            train(recipe=tmp_path / "mine.yaml", init=write_tiny_bert(tmp_path / "bert"), output=tmp_path / "run")


def test_sizes_of_phases_are_numbers_or_their_texts():
    """max_length="64" must not end in a traceback."""
    file = find_config("pretrain", "demo")
    sizes = [PretrainConfig.from_file(file, phase_settings(file, {}, 8, length)).phases for length in (64, "64")]
    assert sizes[0] == sizes[1]
    with pytest.raises(UserError, match=r"sequence_length: needs a whole number. Received: \[64\]"):
        phase_settings(file, {}, None, [64])
    assert phase_settings(file, {"phases": 5}, 8, 64) == {}, "The recipe is refused."


def test_settings_are_checked_before_data_are_read(folder, pretrained):
    """A generator can be read only once, so a misspelt setting must not use it up."""
    rows = iter(REVIEWS)
    with pytest.raises(UserError, match="training.batch_size: needs a value above 0"):
        keras_bert.finetune(pretrained, train=rows, text="review", label="stars", output=folder / "bad", batch_size=0)
    for seeds in (["1"], 3, [-1], [2**32], [1, 1]):
        with pytest.raises(UserError, match=r"^seeds: needs distinct whole numbers from 0 to 4294967295, as in \[1, 2"):
            keras_bert.finetune(pretrained, train=rows, output=folder / "bad", seeds=seeds)
    assert next(rows) == REVIEWS[0] and not (folder / "bad").exists()
    with pytest.raises(UserError, match="Received: python_documentation|python_documentation, which does not use it"):
        keras_bert.pretrain(pandas.DataFrame(REVIEWS), "demo", text="review", output=folder / "bad")
    assert not (folder / "bad").exists()


def test_a_tagger_reads_the_column_that_is_named_as_by_default(tmp_path):
    folder = open_model_folder(write_tiny_bert(tmp_path / "bert"))
    short, given = {"input.max_length": 16}, {"data.texts": ["text"], "input.max_length": 16}
    assert finetuning_recipe("tokens", short, folder).data.word is None
    assert finetuning_recipe("tokens", given, folder).data.word == "text"
    assert finetuning_recipe("tokens", {**given, "data.word": "form"}, folder).data.word == "form"
    assert finetuning_recipe("segment", given, folder).data.word is None
    trained = dataclasses.replace(folder, other_fields={FIELD: {"task": "tokens", "max_length": 16, "word": "form"}})
    assert finetune_config("", trained, {}).data.word == "form"
    assert finetune_config("", trained, {"texts": ["text"]}).data.word == "text"


def test_a_folder_takes_the_place_of_the_files_that_a_run_recorded(tmp_path):
    """Otherwise the recorded files would be scored without a word, whatever --data-dir says."""
    model = dataclasses.replace(open_model_folder(write_tiny_bert(tmp_path / "bert")), other_fields={})
    files = {"train": "train.tsv", "dev": "dev.tsv"}

    def read(task, changes):
        config = FinetuneConfig(task, data=TaskDataConfig(**files))
        RunFolder(str(tmp_path)).bind(config)
        fields = {FIELD: {"task": task, "max_length": 16}}
        data = finetune_config(str(tmp_path), dataclasses.replace(model, other_fields=fields), changes).data
        return data.folder, data.train, data.dev

    assert read("sst2", {}) == (None, "train.tsv", "dev.tsv")
    assert read("sst2", {"folder": "glue"}) == ("glue", None, None)
    assert read("sst2", {"folder": "glue", "dev": "own.tsv"}) == ("glue", "train.tsv", "own.tsv")
    assert read("pairs-contrastive", {"folder": "glue"}) == ("glue", "train.tsv", None)


@pytest.mark.parametrize("recipe", ["", "seed-2"])
def test_a_moved_run_is_evaluated_on_the_data_that_moved_with_it(tmp_path, recipe):
    """Otherwise it would seek its examples where they were written, and report them missing beside them."""
    model = dataclasses.replace(open_model_folder(write_tiny_bert(tmp_path / "bert")), other_fields={})
    run = tmp_path / "moved"
    (run / recipe).mkdir(parents=True)
    data = TaskDataConfig(train="old/given/train.jsonl", dev="old/given/dev.arrow", test="test.csv")
    RunFolder(str(run / recipe)).bind(FinetuneConfig("text", data=data))
    (run / "given").mkdir()
    (run / "given" / "train.jsonl").write_text("{}")
    folder = dataclasses.replace(model, other_fields={FIELD: {"task": "text", "max_length": 16}})
    found = finetune_config(str(run / recipe), folder, {}).data
    assert (found.train, found.dev, found.test) == (f"{run}/given/train.jsonl", "old/given/dev.arrow", "test.csv")


def test_a_recipe_keeps_its_task(tmp_path):
    """Without its task, `rerank` would be trained as a classifier of texts, with other scores."""
    bert, data = write_tiny_bert(tmp_path / "bert"), {"max_length": 16, "output": tmp_path / "run"}
    (tmp_path / "own.yaml").write_text("task: rerank\n")
    (tmp_path / "any.yaml").write_text("training: {epochs: 1}\n")
    for recipe, task, message in (
        ("rerank", None, "needs the names of two columns, the query's"),
        (f"{tmp_path}/own.yaml", None, "needs the names of two columns, the query's"),
        (f"{tmp_path}/own.yaml", "text", "^task: needs rerank, the task of .*own.yaml. Received: text. Leave out one."),
        (f"{tmp_path}/any.yaml", "rerank", "needs the names of two columns, the query's"),
        (f"{tmp_path}/any.yaml", None, "no field 'label', only 'text'. Correct it, or name the field with --text"),
    ):
        with pytest.raises(UserError, match=message):
            keras_bert.finetune(bert, task, train=[{"text": "w1"}], recipe=recipe, **data)
