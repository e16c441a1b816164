"""The command line: quick where it can be, one clear line where it must be."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace

import pytest
from command_line import ROOT, give, output_of, run, sets
from corpus import write_corpus
from goldens import COMMITTED

from keras_bert.cli import main
from keras_bert.cli.options import run_settings
from keras_bert.cli.pretrain import _estimate, _next, _show
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.core import imports
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.core.program import same_command
from keras_bert.models.bert.config import TOKENS, BertConfig
from keras_bert.models.sizes import encoder_parts, head_parts
from keras_bert.training.run_folder import RunFolder

TINY_RUN = sets(
    "model.vocab_size=120",
    "model.hidden_size=16",
    "model.num_hidden_layers=1",
    "phases=[{sequence_length: 16, batch_size: 4, max_predictions_per_seq: 3}]",
    "optimizer.warmup_steps=0",
    "training.jit_compile=false",
    "training.log_every=1",
    "data.validation_share=0.2",
)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("--help", 0),
        ("pretrain --help", 0),
        ("inspect large", 0),
        ("embed --help", 0),
        ("embed --model absent --input - --output x", 2),
        ("pretrain --confg x", 2),
        ("pretrain --set training.stepz=1", 2),
        ("pretrain --config absent", 2),
        ("pretrain --strategy mirrored --config wiki_mini", 2),
    ],
)
def test_help_and_bad_arguments_never_import_tensorflow(arguments, status):
    """Importing TensorFlow, which fails here, would make users wait seconds for an answer."""
    words = ["run.py", *arguments.split()]
    code = f"import sys; sys.modules['tensorflow'] = None; sys.argv = {words!r}; import run; run.main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert result.returncode == status, result.stderr
    assert "Traceback" not in result.stderr


def test_the_package_runs_as_a_module_which_its_messages_and_workers_name():
    def run_module(*arguments):
        words = [sys.executable, "-m", "keras_bert", *arguments]
        return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=60)

    assert "  python -m keras_bert predict --model " in run_module("predict", "--help").stdout
    refused = run_module("launch", "--workers", "1", "--", "pretrain", "--config", "absent")
    assert refused.returncode == 2 and "absent: no such config" in refused.stderr


def test_the_list_of_commands_says_all_of_each_and_shows_the_path():
    """No command's summary may be cut off with dots, and the examples follow the order of the work."""
    told = output_of("--help")
    assert "..." not in told.partition("Commands:")[2] + output_of("study", "--help").partition("Commands:")[2]
    assert all(len(command.short_help) <= 45 for command in main.commands.values())
    path = ("vocab", "prepare", "pretrain --config", "finetune", "evaluate", "predict", "export", "COMMAND --help")
    places = [told.index(f"python run.py {step}") for step in path]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["t5-mini", "elmo-mini", "large"])
def test_the_columns_of_inspect_do_not_touch(name):
    """The long name of a T5's feed-forward kernels would run into the number beside it."""
    config = BertConfig.from_file(find_config("models", name))
    rows = [line for line in output_of("inspect", name).splitlines() if line.startswith("  ")]
    for part in encoder_parts(config):
        assert any(re.fullmatch(rf"  {part.name} +{re.escape(part.product)} +{part.count:,}", row) for row in rows)
    assert not any(part.name + part.product in row for part in head_parts(config) for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("pretrain --set training.stepz=1", "training.stepz: no such setting. The nearest is training.steps."),
        ("pretrain --config wiki_mini", "data.files: needs text to train on"),
        ("pretrain --data '/absent/*.txt' --config wiki_mini", "No file matches '/absent/*.txt'"),
        ("pretrain --data '/absent/*.txt' --init absent", "No file matches '/absent/*.txt'"),  # Nor is the hub asked.
        ("embed --model absent --input /absent.txt --output a.npz", "No file matches '/absent.txt'"),
        (
            "finetune --task sst2 --init absent --data-dir glue",
            "glue: needs the data of sst2. Received: no such folder.",
        ),
        (
            "finetune --task sst2 --init absent --data-dir /dev/null",
            "needs the data of sst2. Received: a file. Give th",
        ),
        ("evaluate --model absent --data-dir glue", "glue: needs the data of the task. Received: no such folder."),
        ("predict --model absent --split dev --output b --data-dir glue", "glue: needs the data of the task. Received"),
        ("evaluate --model absent --dev mine.tsv", "mine.tsv: needs to exist, for the split 'dev' of the task."),
        (
            "predict --model absent --split test --test a.tsv --output b",
            "a.tsv: needs to exist, for the split 'test' o",
        ),
        ("retrieve --model absent --data beir", "beir: needs corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv. Rec"),
        ("inspect bass", "bass: no such config"),
        ("pretrain --config wiki-mini", "wiki-mini: no such config. The nearest is wiki_mini. Give a file, or one of"),
        ("finetune --task SST-2", "Received: SST-2. The nearest is sst2. For your own data, give text, tokens, qa or"),
        ("inspect runs/none", "For a model, give its folder."),
        ("pretrain --tpu mine", "training.tpu: with 'mine', a TPU on another machine, the run's folder"),
        ("pretrain --warmup-steps 9", "is a setting, not an option. Give --set optimizer.warmup_steps=VALUE."),
        ("finetune --dropout=0", "--dropout: is a setting, not an option. Give --set training.dropout=VALUE."),
        ("pretrain --stepz 9", "No such option"),  # The rest is in words of click's version.
        ("pretrain --stepz 9", "--steps"),
        ("pretrain --config bert_base --max-length 64", "Received: a recipe with 128 and 512. Give --set"),
        ("pretrain --batch-size 8 --set phases.0.batch_size=9", "conflicts with an option for the same setting. Rec"),
        ("finetune --task sst2 --max-length 9 --set input.max_length=8", "Received: 8 by --set and 9 by the option."),
        ("finetune --task sst2 --sweep --init PRETRAINED --learning-rate 1e-3", "optimizer.learning_rate"),
        ("pretrain --set init=5", "init: needs text. Received: 5"),
        ("finetune --task sst2 --set 'init=[a]'", "init: needs text. Received: ['a']"),
        ("pretrain --set name=5", "name: needs text. Received: 5"),
        ("pretrain --seed 4294967296", "4294967296 is not in the range 0<=x<=4294967295"),
        ("finetune --task sst2 --seeds 1,4294967296", "--seeds: needs distinct whole numbers from 0 to"),
        ("generate --model absent --seed 4294967296 A", "4294967296 is not in the range"),
        ("pretrain --minutes nan", "nan is not finite"),
        ("pretrain --minutes 0", "0.0 is not in the range x>0"),  # In a recipe 0 means no limit.
        ("pretrain --steps 0", "0 is not in the range x>=1"),
        ("pretrain --strategy tpus", "'tpus' is not one of 'auto', 'one', 'mirrored', 'multiworker', 'tpu'"),
        ("finetune --features all", "'all' is not one of 'embeddings', 'second_to_last', 'last'"),
        ("prepare --input a --vocab b --output c --validation-share nan", "is not finite"),
        ("prepare --input a --vocab b --output c --shard-megabytes inf", "is not finite"),
        ("fill --model /absent '[MASK]'", "/absent: needs a model folder"),
        ("generate --model /absent --top-k 5 A", "--top-k: needs a temperature above 0"),
        ("generate --model /absent --temperature 1 --top-p 2 A", "2.0 is not in the range 0<x<=1"),
        ("generate --model PRETRAINED A", "needs model.attention causal to generate. Received: bidirectional"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = give(*shlex.split(arguments.replace("PRETRAINED", os.path.join(COMMITTED, "pretraining"))), status=2)
    errors = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1 and message in errors[0]


@pytest.mark.parametrize(
    "command",
    [
        "pretrain --output",
        "finetune --task sst2 --output",
        "finetune --task glue --output",
        "prepare --input in.txt --vocab in.txt --output",
        "export --model in.txt --output",
        "convert --to google in.txt",
    ],
)
def test_a_file_where_a_folder_is_to_be_written_is_told_before_anything_is_done(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("text")
    (tmp_path / "out").write_text("mine")
    told = output_of(*command.split(), "out", status=2)
    assert told.splitlines()[-1] == "Error: out: needs a folder. Received: a file. Give another path."
    assert (tmp_path / "out").read_text() == "mine" and sorted(os.listdir(tmp_path)) == ["in.txt", "out"]
    below = give(*command.split(), "out/below", status=2)
    assert "Traceback" not in below.output, below.output


@pytest.mark.parametrize("place", ["in.txt/new/out", "/proc/new/out"])
@pytest.mark.parametrize(
    "command",
    [
        "vocab --input in.txt --size 90 --output",
        "prepare --input in.txt --vocab in.txt --output",
        "pretrain --output",
        "finetune --task sst2 --init in.txt --output",
        "export --model in.txt --output",
        "embed --model in.txt --input - --output",
        "predict --model in.txt --input in.txt --output",
        "evaluate --model in.txt --output",
        "convert --to google in.txt",
    ],
)
def test_a_path_that_cannot_be_written_is_told_before_anything_is_read(command, place, tmp_path, monkeypatch):
    """`vocab` would read the whole corpus first, and `predict` load the model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("text")
    result = give(*command.split(), place, status=2)
    assert result.output.splitlines()[-1].startswith(f"Error: {place}: cannot be written (")
    assert os.listdir(tmp_path) == ["in.txt"]


@pytest.mark.parametrize(
    "command, named",
    [
        ("export --model in.txt --output", "--output"),
        ("embed --model in.txt --input - --output", "--output"),
        ("evaluate --model in.txt --picture", "--picture"),
        ("convert --to google in.txt", "DIR"),
    ],
)
def test_an_empty_path_is_told_before_anything_is_read(command, named):
    """With an unset shell variable, `export` would write into the working folder and `embed` fail at its end."""
    result = give(*command.split(), "", status=2)
    assert result.output.splitlines()[-1] == f"Error: {named}: needs a path. Received: an empty text. Give one."


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("pretrain --data in.txt --init", "--init"),
        ("finetune --task sst2 --data-dir", "--data-dir"),
        ("finetune --task sst2 --prepare pairs --prepare-text", "--prepare-text"),
        ("prepare --input in.txt --vocab v.txt --output out --phrases", "--phrases"),
        ("convert --to google", "MODEL"),
        ("study landscape --task sst2 --output out --init", "--init"),
    ],
)
def test_an_empty_name_is_no_option_that_is_left_out(command, named):
    """If MODEL is unset, `--init "$MODEL"` would train from random weights or from the newest run."""
    result = give(*command.split(), "", *(["out"] if named == "MODEL" else []), status=2)
    assert result.output.splitlines()[-1] == f"Error: {named}: needs a value. Received: an empty text. Give one."


@pytest.mark.parametrize("command", ["evaluate --model in.txt --output", "embed --model in.txt --input - --output"])
def test_a_folder_where_a_file_is_to_be_written_is_told_before_anything_is_done(command, tmp_path):
    result = give(*command.split(), str(tmp_path), status=2)
    assert f"{tmp_path}: needs a file to write. Received: a folder." in result.output


def test_a_bare_strategy_tpu_without_a_tpu_is_one_line_before_any_data(tmp_path, monkeypatch):
    """On the wrong machine nobody should wait for Wikipedia first, or be left with a run folder."""
    monkeypatch.chdir(tmp_path)
    result = give("pretrain", "--strategy", "tpu", status=2)
    assert not os.listdir(tmp_path)
    assert re.fullmatch(
        r"Error: training.strategy tpu: no TPU was found on this machine \(--tpu local; TensorFlow lists CPU:0\S*\); "
        r"--strategy auto would train on CPU:0 here. See docs/tpu.md.",
        result.output.strip(),
    )


def test_every_command_shows_an_example():
    """Beside examples, which are to be copied, no line is wider than a terminal."""
    commands = {(name,): command for name, command in main.commands.items()}
    commands |= {("study", name): command for name, command in main.commands["study"].commands.items()}
    for names, command in commands.items():
        told = output_of(*names, "--help")
        assert f"python run.py {' '.join(names)}" in told
        assert command.params or names == ("study",)
        assert [line for line in told.partition("Example")[0].splitlines() if len(line) > 80] == []


@pytest.mark.slow
def test_pretrain_continue_fill_inspect_as_a_user(tmp_path, monkeypatch):
    """The commands, typed in a user's own folder, are quiet and resumable, and name the next command."""
    corpus = write_corpus(tmp_path / "text.txt", count=120)
    arguments = ["pretrain", "--config", "wiki_mini", "--data", corpus, "--output", "out", *TINY_RUN]
    first = run(*arguments, "--steps", "3", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "cuda" not in first.stderr.lower() and "oneDNN" not in first.stderr
    assert re.search(r"^ +3 +100% .* validation$", first.stdout, re.MULTILINE)
    assert "run.py fill --model out" in first.stdout
    card = (tmp_path / "out" / "model" / "README.md").read_text(encoding="utf-8")
    assert f"python run.py {shlex.join([*arguments, '--steps', '3'])}" in card
    # Starting a process costs more than the command, so only the first, whose streams matter, has one.
    monkeypatch.chdir(tmp_path)
    assert "out is finished: 3 steps" in output_of(*arguments, "--steps", "3")
    other = give(*arguments, "--steps", "3", "--set", "optimizer.learning_rate=1", status=2)
    assert "optimizer.learning_rate: was 0.001, now 1.0" in other.stderr
    give(*arguments, "--steps", "1", "--fresh")
    assert (tmp_path / "out-2" / "model" / "config.json").exists()
    filled = give("fill", "--model", "out", "--top-k", "2", "The [MASK] sees the [MASK].")
    assert "[MASK] 1:" in filled.stdout and "[MASK] 2:" in filled.stdout and "→" in filled.stdout
    assert "model.safetensors" in output_of("inspect", "out")


def test_a_fault_keeps_its_traceback(tmp_path, monkeypatch):
    """A bug does not pass for bad input: the status is 1, and the traceback is in the run's folder."""
    os.makedirs(tmp_path / "run")

    def fail(*arguments):
        raise RuntimeError("the bug")

    monkeypatch.setattr("keras_bert.tasks.pretraining.run.pretrain", fail)
    arguments = ["pretrain", "--output", str(tmp_path / "run")]
    result = give(*arguments, status=1)
    assert "the bug" in result.output
    assert "RuntimeError: the bug" in (tmp_path / "run" / "error.log").read_text()
    assert isinstance(give("--debug", *arguments, status=1).exception, RuntimeError)


def test_a_folder_whose_name_tensorflow_cannot_write_is_refused_at_once(tmp_path):
    refused = give("pretrain", "--output", f"{tmp_path}/caf\udce9", status=2).stderr
    assert "caf\\udce9': needs a name in UTF-8" in refused and not os.listdir(tmp_path)


def test_a_missing_extra_is_told_before_a_model_is_looked_for(monkeypatch, tmp_path):
    """The export to ONNX used to fetch and load the model first."""
    monkeypatch.setattr(imports, "is_installed", lambda package: False)
    refused = give("export", "--format", "onnx", "--model", "absent", "--output", f"{tmp_path}/onnx", status=2).stderr
    assert "--format onnx: needs the package onnx, which is not installed" in refused


def test_a_working_folder_that_was_removed_is_one_line(tmp_path):
    """Python also looks for no package beside run.py here, as some systems have it."""
    (tmp_path / "gone").mkdir()
    words = [sys.executable, os.path.join(ROOT, "run.py"), "pretrain"]
    gone = ["sh", "-c", f"rmdir '{tmp_path}/gone' && exec {shlex.join(words)}"]
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    result = subprocess.run(gone, capture_output=True, text=True, cwd=tmp_path / "gone", env=environment)
    assert result.returncode == 2 and result.stderr.startswith("Error: The working folder was removed.")


def test_ctrl_c_outside_of_the_training_has_the_status_of_a_signal(tmp_path, monkeypatch):
    """It had 1, which a script takes for a bug. After the last step, whoever stops it must not fear for the run."""

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("keras_bert.tasks.pretraining.run.pretrain", interrupt)
    assert give("pretrain", "--output", str(tmp_path / "run"), status=130).stderr.endswith("Aborted!\n")
    assert not (tmp_path / "run").exists()
    (tmp_path / "run").mkdir()
    stopped = give("pretrain", "--output", str(tmp_path / "run"), status=130).stderr
    assert stopped.endswith("Aborted! Run the same command to resume.\n")


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device", "/runs/x/metrics.jsonl")

    monkeypatch.setattr("keras_bert.tasks.pretraining.run.pretrain", full)
    result = give("pretrain", "--output", str(tmp_path / "run"), status=2)
    assert "/runs/x/metrics.jsonl: No space left on device." in result.output


def test_no_folder_for_temporary_files_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", list)
    monkeypatch.setattr("keras_bert.tasks.pretraining.run.pretrain", lambda *_, **__: tempfile.gettempdir())
    result = give("pretrain", "--output", str(tmp_path / "run"), status=2)
    assert "Error: Writing: No usable temporary directory found in []." in result.output


@pytest.mark.parametrize(
    ("arguments", "runs"),
    [(["pretrain"], "keras_bert.tasks.pretraining.run.pretrain"), (["finetune", "--task", "sst2"], "one")],
)
def test_what_resumes_a_run_is_never_fresh(tmp_path, monkeypatch, arguments, runs):
    """Repeated with --fresh, the command would start another run in another folder instead of resuming."""

    def stop(*arguments, **options):
        raise RunStopped(f"Run {same_command()} to resume from there.", 75)

    if runs == "one":
        opened = SimpleNamespace(name="bert", path="bert", require_positions=lambda length: None)
        monkeypatch.setattr(sys.modules["keras_bert.api.finetuning"], "open_model_folder", lambda *names: opened)
        runs = "keras_bert.tasks.finetuning.runs.FinetuningRuns"
        arguments = [*arguments, "--init", "bert"]
    monkeypatch.setattr(runs, stop)
    (tmp_path / "run").mkdir()
    for fresh, said in ((["--fresh"], f" with --output {tmp_path}/run-2 and without --fresh"), ([], "")):
        told = output_of(*arguments, "--output", f"{tmp_path}/run", *fresh, status=75)
        assert f"Run the same command{said} to resume from there." in told


@pytest.mark.parametrize(
    ("module", "arguments", "runs"),
    [
        ("pretrain", [], "keras_bert.tasks.pretraining.run.pretrain"),
        ("finetune", ["--task", "sst2", "--init", "bert"], "keras_bert.tasks.finetuning.runs.FinetuningRuns"),
        ("finetune", ["--task", "glue", "--init", "bert"], "keras_bert.tasks.finetuning.runs.finetune_benchmark"),
    ],
)
def test_a_command_begins_before_its_model_is_fetched(tmp_path, monkeypatch, module, arguments, runs):
    """--max-minutes counts a job's slot, which includes the download and the import of TensorFlow."""
    fetched, times = [], []

    def run(*arguments, started_at=None, **options):
        times.append(arguments[-1] if started_at is None else started_at)
        raise UserError("enough")

    def fetch(*names):
        fetched.append(time.monotonic())
        return SimpleNamespace(name="bert", path="bert", require_positions=lambda length: None)

    command = sys.modules[f"keras_bert.cli.{module}"]
    opener = sys.modules[{"pretrain": "keras_bert.api.pretraining", "finetune": "keras_bert.api.finetuning"}[module]]
    monkeypatch.setattr(opener, "open_model_folder", fetch)
    monkeypatch.setattr(command, "load_tensorflow", lambda: fetched.append(time.monotonic()))
    monkeypatch.setattr(runs, run)
    assert "enough" in output_of(module, *arguments, "--output", f"{tmp_path}/run", status=2)
    assert times[0] <= min(fetched)


def test_blanks_between_devices_are_no_part_of_their_names():
    """`--devices "CPU:0, CPU:1"` would ask for a device called " CPU:1", which no machine has."""
    given = dict.fromkeys(("strategy", "tpu", "steps", "minutes", "max_minutes"))
    assert run_settings({}, devices="CPU:0, CPU:1", **given) == {"training.devices": ["CPU:0", "CPU:1"]}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("optimizer.warmup_share", ["Settings of pretrain", "optimizer.warmup_share=0.0", "0.06 in continue"]),
        ("finetune patience", ["training.patience=0", "Validations in a row", "a whole number, 0 or more"]),
        ("phases.1.sequence-length", ["phases.0.sequence_length=128", "64 then 128 in albert_mini"]),
        ("dropout", ["model.hidden_dropout_prob=0.1", "training.dropout=null", "Of an ALBERT: dropout"]),
        ("pretrain", ["name=pretrain", "\nphases\n", "model.vocab_size=30000", "training.loss_band=10.0"]),
        ("noise", ["noise.kinds=[]", "Noisy copies to train on."]),
    ],
)
def test_settings_are_found_by_key_section_or_part(asked, told):
    """Users would have to read the code to learn which settings there are, and their defaults."""
    result = give("settings", *asked.split())
    assert all(part in result.output for part in told), result.output
    assert ("Settings of finetune" in result.output) is (asked not in ("pretrain", "phases.1.sequence-length"))


def test_a_misspelt_setting_names_the_nearest():
    result = give("settings", "optimiser.lerning_rate", status=2)
    assert "The nearest is optimizer.learning_rate." in result.output


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ("--config demo --batch-size 8", [(64, 8, 10)]),
        ("--config demo --max-length 128", [(128, 32, 20)]),
        ("--config demo --max-length 32 --set phases.0.max_predictions_per_seq=3", [(32, 32, 3)]),
        ("--config bert_base --data . --batch-size 16", [(128, 16, 20), (512, 16, 77)]),
        ("--config bare.yaml --batch-size 16", [(128, 16, 20)]),
    ],
)
def test_sizes_are_those_of_every_phase(options, sizes, tmp_path, monkeypatch):
    """Otherwise a recipe without phases would keep the default batch, and longer rows the default predictions."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bare.yaml").write_text("data: {source: python_documentation}")

    def stop(recipe, *others):
        found = [(one.sequence_length, one.batch_size, one.max_predictions_per_seq) for one in recipe.phases]
        raise UserError(f"{found}, rate {recipe.optimizer.learning_rate}")

    monkeypatch.setattr("keras_bert.tasks.pretraining.run.pretrain", stop)
    rates = ["--learning-rate", "0.5", "--set", "optimizer.learning_rate=5e-1"]
    told = output_of("pretrain", *options.split(), *rates, status=2)
    assert f"{sizes}, rate 0.5" in told


@pytest.mark.parametrize("option", ["--strategy=auto", "--set=training.strategy=auto"])
def test_a_strategy_alone_trains_bert_base(option, tmp_path, monkeypatch):
    """By --set it used to be the demo."""
    monkeypatch.chdir(tmp_path)

    def stop(recipe, *others):
        raise UserError(recipe.name)

    monkeypatch.setattr("keras_bert.tasks.pretraining.run.pretrain", stop)
    assert output_of("pretrain", option, status=2).strip().endswith("Error: bert_base")


MLM = {"steps": 5, "eval_mlm_loss": 2.0, "eval_perplexity": 7.4, "eval_mask_token_loss": 2.5, "examples": []}


@pytest.mark.parametrize(
    "more, expected",
    [
        ({}, ("perplexity 7.4.", "only: 2.500 nats.")),
        (
            {"eval_nsp_loss": 0.5, "eval_nsp_accuracy": 0.75},
            ("perplexity 7.4, next sentence 75.0%.", "only: 2.500 nats."),
        ),
        ({"eval_mask_token_unigram_loss": 3.0}, ("perplexity 7.4.", "below the training text's unigram (3.000).")),
    ],
)
def test_only_what_was_measured_is_shown(capsys, more, expected):
    _show({**MLM, **more})
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith(end) for line, end in zip(lines, expected, strict=True)] == [True, True]


@pytest.mark.parametrize("predicts", TOKENS)
def test_what_is_proposed_can_be_given_to_the_shell(predicts):
    """A run folder with a blank in its name would be split into two arguments."""
    words = shlex.split(_next("runs/my run", predicts))
    assert words[:2] == ["python", "run.py"] and words.count("runs/my run") == 2


def test_an_estimate_of_a_longer_run_does_not_make_it_longer(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setattr("keras_bert.tasks.pretraining.run.Pretraining.build", lambda pretraining: None)
    monkeypatch.setattr(
        "keras_bert.tasks.pretraining.estimate.estimate", lambda pretraining: SimpleNamespace(lines=list)
    )
    data = {"files": [write_corpus(tmp_path / "text.txt", 5)]}
    short, long = (PretrainConfig.from_mapping({"data": data, "training": {"steps": steps}}) for steps in (10, 20))
    run = RunFolder(str(tmp_path / "run"))
    with run:
        run.claim(short)
    os.makedirs(os.path.join(run.checkpoints, "step-000000001"))
    _estimate(long, run)
    with run:
        run.claim(short)
