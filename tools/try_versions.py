"""Builds the wheel, installs it under every Python and TensorFlow that it promises, and uses it there.

    python tools/try_versions.py FOLDER [--python 3.10 --python 3.13] [--tensorflow 2.20] [--extra all]

For each pair an environment is made in FOLDER, without the checkout on its path. There the package is imported, the
demo trained for 20 steps, a classifier fine-tuned on a CSV file, both exported, and the exports opened and asked.
An interpreter is taken from the PATH or from pyenv, else from `uv python find`. A pair that cannot be installed is
named with the reason; the exit status is 1 if anything that was installed failed.
"""

import argparse
import csv
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
TENSORFLOWS = ("2.20", "2.21")

OPEN_EXPORT = """
import sys, numpy as np, tensorflow as tf, tensorflow_text
answer = tf.saved_model.load(sys.argv[1]).signatures["serving_default"](text=tf.constant(["A [MASK] film."]))
assert all(np.isfinite(value).all() for value in answer.values() if value.dtype.is_floating), answer
"""
VERSIONS = """
import keras, tensorflow, tensorflow_text, keras_bert
print(tensorflow.__version__, tensorflow_text.__version__, keras.__version__, keras_bert.__version__)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="where the environments and their logs go")
    parser.add_argument("--python", action="append", choices=PYTHONS, help="repeatable; default: all")
    parser.add_argument("--tensorflow", action="append", choices=TENSORFLOWS, help="repeatable; default: all")
    parser.add_argument("--extra", action="append", default=[], help="an extra of the package to install; repeatable")
    arguments = parser.parse_args()
    folder = os.path.abspath(arguments.folder)
    os.makedirs(folder, exist_ok=True)
    wheel = build_wheel(folder) + (f"[{','.join(arguments.extra)}]" if arguments.extra else "")
    failed = False
    print(f"{'Python':<8}{'TensorFlow':<12}outcome", flush=True)
    for python in arguments.python or PYTHONS:
        for tensorflow in arguments.tensorflow or TENSORFLOWS:
            outcome, is_failure = try_pair(folder, wheel, python, tensorflow)
            failed |= is_failure
            print(f"{python:<8}{tensorflow:<12}{outcome}", flush=True)
    sys.exit(1 if failed else 0)


def build_wheel(folder: str) -> str:
    """The path of a wheel made of the checkout as it is."""
    dist = os.path.join(folder, "dist")
    shutil.rmtree(dist, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", dist, ROOT], check=True
    )
    return glob.glob(os.path.join(dist, "*.whl"))[0]


def try_pair(folder: str, wheel: str, python: str, tensorflow: str) -> tuple[str, bool]:
    """(the result in one line, whether it is a failure)."""
    interpreter = find_interpreter(python)
    if interpreter is None:
        return "not tried: no such Python here", False
    venv = os.path.join(folder, f"python{python}-tensorflow{tensorflow}")
    log_path = f"{venv}.log"
    inside = os.path.join(venv, "bin", "python")
    started_at = time.perf_counter()
    with open(log_path, "w", encoding="utf-8") as log:

        def run(*command: str) -> None:
            # PYTHONPATH and the like would let the checkout in.
            environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
            print("$", *command, file=log, flush=True)
            subprocess.run(command, cwd=work, env=environment, stdout=log, stderr=log, check=True)

        with tempfile.TemporaryDirectory() as work:
            try:
                pins = [f"{name}=={tensorflow}.*" for name in ("tensorflow", "tensorflow-text")]
                if shutil.which("uv"):  # Takes seconds; pip takes minutes.
                    run("uv", "venv", "--quiet", "--clear", "--python", interpreter, venv)
                    run("uv", "pip", "install", "--quiet", "--python", inside, *pins, wheel)
                else:
                    run(interpreter, "-m", "venv", "--clear", venv)
                    run(inside, "-m", "pip", "install", "--quiet", *pins, wheel)
            except subprocess.CalledProcessError:
                return f"cannot be installed: {last_line(log_path)}", False
            try:
                use(inside, run, work)
            except subprocess.CalledProcessError:
                return f"FAILED, see {log_path}: {last_line(log_path)}", True
    versions = subprocess.run([inside, "-c", VERSIONS], capture_output=True, text=True, cwd=folder, check=True)
    tensorflow_version, text_version, keras_version, _ = versions.stdout.split()
    return (
        f"works: tensorflow {tensorflow_version}, tensorflow-text {text_version}, keras {keras_version}, "
        f"{time.perf_counter() - started_at:.0f} s",
        False,
    )


def use(inside: str, run, work: str) -> None:
    """What a new user does first; `run` raises `CalledProcessError` if a command fails."""
    program = os.path.join(os.path.dirname(inside), "keras-bert")
    reviews = os.path.join(work, "reviews.csv")
    with open(reviews, "w", encoding="utf-8", newline="") as stream:
        rows = [(f"a {word} film, number {number}", word) for number in range(20) for word in ("good", "bad")]
        csv.writer(stream).writerows([("review", "stars"), *rows])
    run(inside, "-c", "import keras_bert; keras_bert.BertConfig; keras_bert.BertEncoder")
    run(program, "inspect", "base")
    run(
        program,
        "pretrain",
        "--steps",
        "20",
        "--output",
        "demo",
        "--set",
        "optimizer.warmup_steps=2",
        "--set",
        "training.jit_compile=false",
    )
    run(
        program,
        "finetune",
        "--task",
        "text",
        "--init",
        "demo",
        "--train",
        reviews,
        "--text",
        "review",
        "--label",
        "stars",
        "--epochs",
        "1",
        "--output",
        "reviews",
    )
    run(program, "evaluate", "--model", "reviews")
    for model in ("demo", "reviews"):
        run(program, "export", "--model", model, "--output", f"served_{model}")
        run(inside, "-c", OPEN_EXPORT, os.path.join(work, f"served_{model}", "1"))


def find_interpreter(version: str) -> str | None:
    """The path of a Python of this version; None if the machine has none."""
    candidates = [shutil.which(f"python{version}")]
    candidates += sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python")), reverse=True)
    if shutil.which("uv"):
        found = subprocess.run(["uv", "python", "find", version], capture_output=True, text=True)
        candidates.append(found.stdout.strip())
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    for candidate in filter(None, candidates):  # pyenv also has shims for versions that do not run.
        answer = subprocess.run([candidate, "-c", code], capture_output=True, text=True)
        if answer.returncode == 0 and answer.stdout.strip() == version:
            return candidate
    return None


def last_line(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as log:
        lines = [line.strip() for line in log if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or [""])[-1][:200]


if __name__ == "__main__":
    main()
