"""Two worker processes on this machine train as one process does."""

import functools
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml
from command_line import ROOT, give, output_of, run, sets
from corpus import write_corpus
from faults import faults, no_number
from finetuning import write_sst2, write_tiny_bert

from keras_bert.cli.launch import free_ports, worker_environment
from keras_bert.training import engine

pytestmark = pytest.mark.usefixtures("quick_commands")

RECIPE = """
model: {vocab_size: 120, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32,
  hidden_dropout_prob: 0, attention_probs_dropout_prob: 0}
data: {validation_share: 0.2}
phases: [{sequence_length: 16, batch_size: 8, max_predictions_per_seq: 3}]
optimizer: {learning_rate: 1.0e-2, warmup_steps: 2}
training: {steps: 10, log_every: 1, evaluate_every: 5}
"""


def pretrain(folder, **training):
    """The arguments of a run on a text, whose recipe is written into the folder."""
    corpus = write_corpus(folder / "text.txt", count=120)
    recipe = yaml.safe_load(RECIPE)
    recipe["training"] |= training
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return ["pretrain", "--config", "recipe.yaml", "--data", corpus]


def launched(arguments, folder):
    """What two workers of `launch` print."""
    together = run("launch", "--workers", "2", "--", *arguments, "--output", "two", cwd=folder)
    assert together.returncode == 0, together.stderr
    return together.stdout


def started(arguments, folders, environments):
    """Two workers of one run without a launcher, each in its folder and with its variables."""
    return [
        subprocess.Popen(
            [sys.executable, os.path.join(ROOT, "run.py"), *arguments],
            env=environment,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for folder, environment in zip(folders, environments, strict=True)
    ]


def started_by_tf_config(arguments, folders):
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    return started([*arguments, "--output", "run"], folders, [worker_environment(addresses, index) for index in (0, 1)])


def started_by_slurm(arguments, folder):
    """What the first of a step's two tasks prints. They need only what `srun` sets: no script, no TF_CONFIG."""
    step = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    step |= {
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_STEP_TASKS_PER_NODE": "2",
    }
    tasks = started(
        [*arguments, "--output", "two"], [folder] * 2, [{**step, "SLURM_PROCID": index} for index in ("0", "1")]
    )
    outputs = [task.communicate(timeout=600)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], outputs
    return outputs[0]


PROGRAM = """
import sys
from keras_bert.cli import main
from keras_bert.core.runtime import lean_import
if "launch" not in sys.argv:  # In a worker.
    with lean_import():
        {change}
main()
"""


def changed_and_launched(change, arguments, folder):
    """What two workers print, each of which first runs a line of code that changes the command."""
    (folder / "program.py").write_text(PROGRAM.format(change=change))
    paths = os.pathsep.join([ROOT, os.path.join(ROOT, "tests", "support"), os.environ["PYTHONPATH"]])
    command = [sys.executable, "program.py", "launch", "--workers", "2", "--", *arguments, "--output", "two"]
    environment = {**os.environ, "PYTHONPATH": paths}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def losses(folder):
    lines = [json.loads(line) for line in open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8")]
    return [(line["step"], line.get("loss", line.get("eval_loss"))) for line in lines]


# test_optimizer_steps.py has LAMB, whose state is AdamW's, over replicas.
ADAMW = [
    "initialization=corpus",
    "training.accumulation=2",
    "optimizer.layer_decay=0.8",
    "optimizer.weight_average=0.8",
]
ADAFACTOR = [
    "optimizer.name=adafactor",
    "optimizer.relative_step=true",
    "optimizer.first_moment=true",
    "optimizer.weight_average=0.8",
    "training.gradient_norms=true",
]


@pytest.mark.slow
@pytest.mark.parametrize("settings, as_two", [(ADAMW, launched), (ADAFACTOR, started_by_slurm)], ids=["launch", "srun"])
def test_two_workers_equal_one_process_on_the_same_global_batch(settings, as_two, tmp_path, monkeypatch):
    arguments = [*pretrain(tmp_path), *sets(*settings)]
    monkeypatch.chdir(tmp_path)
    give(*arguments, "--output", "one", "--strategy", "one")
    said = as_two(arguments, tmp_path)
    assert "process 0 of 2" in said and "2 replicas" in said
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert [step for step, _ in two] == [step for step, _ in one]
    np.testing.assert_allclose([loss for _, loss in two], [loss for _, loss in one], rtol=1e-5)
    assert (tmp_path / "two" / "model" / "model.safetensors").exists()


@pytest.mark.slow
def test_two_workers_stream_the_text_that_one_process_does(tmp_path, monkeypatch):
    """Stopped once, with one file for both. A worker with epochs or files of its own would train on other rows, resume
    at others, or find no file to validate on."""
    arguments = [*pretrain(tmp_path), *sets("data.source=text", "objective.pair=none", "initialization=corpus")]
    monkeypatch.chdir(tmp_path)
    give(*arguments, "--output", "one", "--strategy", "one")
    together = ("launch", "--workers", "2", "--", *arguments, "--output", "two")
    # The time limit is over at once, so the first start does one step.
    ends = [run(*together, *limit, cwd=tmp_path) for limit in (["--max-minutes", "0.0001"], [])]
    assert [end.returncode for end in ends] == [0, 0] and "Resuming from step 1." in ends[1].stdout, ends[1].stderr
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert [step for step, _ in two] == [step for step, _ in one]
    np.testing.assert_allclose([loss for _, loss in two], [loss for _, loss in one], rtol=1e-5)


@pytest.mark.slow
def test_two_workers_time_equally_many_steps_and_one_says_what_a_run_takes(tmp_path):
    """If each stopped by its own clock, one's further step would meet the other's validation: an internal error."""
    change = (
        "import keras_bert.tasks.pretraining.estimate as estimate, keras_bert.training.cluster as cluster; "
        "estimate._WARM_UP_SECONDS, estimate._TIMED_SECONDS = 0.2, 0.5 + 2.0 * cluster.worker_index()"
    )
    said = changed_and_launched(change, [*pretrain(tmp_path), "--estimate"], tmp_path)
    assert said.count("10 steps of 8 x 16") == said.count("In total, with") == 1
    assert not (tmp_path / "two" / "checkpoints").exists()


@pytest.mark.slow
def test_two_workers_go_back_together(tmp_path, monkeypatch):
    """After a gradient that is not finite, once in each; if one left out other batches, the losses would differ."""
    change = (
        "import faults, pytest; held = faults.faults(pytest.MonkeyPatch(), {5: [faults.no_number]}); held.__enter__()"
    )
    arguments = pretrain(tmp_path, checkpoint_every=3)
    monkeypatch.chdir(tmp_path)
    with faults(monkeypatch, {5: [no_number]}):
        alone = output_of(*arguments, "--output", "one", "--strategy", "one")
    for output in (alone, changed_and_launched(change, arguments, tmp_path)):
        assert output.count("(rollback 1 of 3)") == 1
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert [step for step, _ in one] == [step for step, _ in two] == [1, 2, 3, 3, *range(4, 6), 5, *range(6, 11), 10]
    for (_, ours), (_, theirs) in zip(one, two, strict=True):
        assert ours == theirs is None or ours == pytest.approx(theirs, rel=1e-5)


@pytest.mark.slow
def test_two_workers_skip_the_same_steps_in_float16(tmp_path, monkeypatch):
    """From a loss scale that overflows. A worker that skipped alone would have other weights than the other."""
    change = (
        "import functools; from keras_bert.training import engine; "
        "engine.LossScale = functools.partial(engine.LossScale, 2.0**20, 2)"
    )
    # From random weights one step lies at the edge: it overflows for the whole batch, and not for its halves.
    arguments = [*pretrain(tmp_path, precision="float16"), *sets("initialization=corpus")]
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(engine, "LossScale", functools.partial(engine.LossScale, 2.0**20, 2))
        give(*arguments, "--output", "one", "--strategy", "one")
    changed_and_launched(change, arguments, tmp_path)

    def figures(folder):
        text = (tmp_path / folder / "metrics.jsonl").read_text(encoding="utf-8")
        lines = [line for line in map(json.loads, text.splitlines()) if "loss_scale" in line]
        return [[line[name] for line in lines] for name in ("loss_scale", "skipped_steps", "loss")]

    one, two = figures("one"), figures("two")
    assert one[:2] == two[:2] and one[1][-1] > 0
    np.testing.assert_allclose(two[2], one[2], rtol=5e-3)


@pytest.mark.slow
def test_workers_with_a_folder_each_are_refused(tmp_path):
    """On machines without a shared disk, one would go on from a checkpoint that the other does not have."""
    arguments = pretrain(tmp_path)
    arguments[2] = "../recipe.yaml"
    for name in ("0", "1"):
        (tmp_path / name).mkdir()
    for process in started_by_tf_config(arguments, [tmp_path / "0", tmp_path / "1"]):
        told = process.communicate(timeout=600)[0].strip().splitlines()[-1]
        assert process.returncode == 2 and "Error: run: needs the same folder in every process of the run." in told, (
            told
        )


@pytest.mark.slow
def test_workers_with_examples_of_their_own_are_refused(tmp_path):
    """On machines with copies of a task's files: each would train on its part of other batches."""
    for name, count in (("0", 24), ("1", 32)):
        write_sst2(tmp_path / name / "sst2", train=count)
    finetune = ["finetune", "--task", "sst2", "--init", write_tiny_bert(tmp_path / "bert"), "--data-dir", "sst2"]
    finetune += ["--steps", "3", *sets("input.max_length=24", "training.batch_size=8"), "--output", "../run"]
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    environments = [worker_environment(addresses, index) for index in (0, 1)]
    for process in started(finetune, [tmp_path / "0", tmp_path / "1"], environments):
        told = process.communicate(timeout=600)[0].strip().splitlines()[-1]
        assert process.returncode == 2 and "needs the same training examples in every process" in told, told


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_that_is_left_alone_says_so_in_one_line_and_ends_within_a_minute(victim, tmp_path):
    """Without a launcher, as on machines of their own; worker 0 is the one that TensorFlow's heartbeats go to."""
    workers = started_by_tf_config(pretrain(tmp_path, steps=100000, evaluate_every=50000), [tmp_path] * 2)
    try:
        lines = tmp_path / "run" / "metrics.jsonl"
        while not lines.exists() or lines.stat().st_size < 2000:
            assert not any(worker.poll() for worker in workers), [worker.communicate() for worker in workers]
            time.sleep(0.1)
        workers[victim].kill()
        said = workers[1 - victim].communicate(timeout=60)[0]
    finally:
        for worker in workers:
            worker.kill()
    assert workers[1 - victim].returncode == 75, said
    assert said.strip().splitlines()[-1].startswith("Another worker of this run is gone (") and "Traceback" not in said


@pytest.mark.slow
def test_two_workers_fine_tune_for_two_seeds_and_find_them_finished(tmp_path):
    """Only one writes, and none waits for another that has nothing left to do."""
    write_tiny_bert(tmp_path / "bert")
    write_sst2(tmp_path / "sst2")
    finetune = "launch --workers 2 -- finetune --task sst2 --init bert --data-dir sst2 --steps 3 --seeds 1,2".split()
    finetune += sets("input.max_length=24", "training.batch_size=8", "training.jit_compile=false")
    finetune += ["--output", "run"]
    first, again = run(*finetune, cwd=tmp_path), run(*finetune, cwd=tmp_path)
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert "run/seed-2 is finished: 3 steps." in again.stdout
    results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    assert results["seeds"] == [1, 2] and not list(tmp_path.glob("run/**/*.partial"))
