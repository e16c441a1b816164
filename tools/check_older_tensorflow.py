"""Makes and opens exports under the TensorFlow that TensorFlow Serving 2.20 is built of, in an environment of its own.

    python tools/check_older_tensorflow.py VENV [--model MODEL] [--opened VERSION_FOLDER]

VENV is made if it is missing, with tensorflow and tensorflow-text 2.20 and what the package needs. There a MODEL (by
default small ones, of every kind) is exported and the export opened. VERSION_FOLDER, an export that another TensorFlow
made, is opened too. --ops prints the names of all ops of that TensorFlow, including tensorflow_text's:
tests/export/serving_ops.txt.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VERSION = "2.20.*"
TEXTS = ["The cat sat on the [MASK].", "", b"a\xffb\0 [MASK]", "x" * 1000, "word " * 1000]
OPS_HEADER = """\
# The ops that TensorFlow Serving 2.20 can run: those of its core, and those of tensorflow_text, all of which it links.
# Made by: python tools/check_older_tensorflow.py VENV --ops (tensorflow {}, tensorflow-text {})"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("venv", help="the environment's folder")
    parser.add_argument("--model", action="append", default=[], help="a MODEL to export there; repeatable")
    parser.add_argument("--opened", action="append", default=[], help="a version to open there; repeatable")
    parser.add_argument("--ops", action="store_true", help="print the names of all ops instead")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return print_ops() if arguments.ops else check(arguments.model, arguments.opened)
    python = os.path.join(arguments.venv, "bin", "python")
    if not os.path.exists(python):
        make_environment(arguments.venv, python)
    paths = os.pathsep.join([ROOT, os.path.join(ROOT, "tests", "support")])
    environment = {**os.environ, "PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [python, os.path.abspath(__file__), *sys.argv[1:], "--inside"]
    sys.exit(subprocess.run(command, env=environment).returncode)


def make_environment(folder, python):
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    older = [f"tensorflow=={VERSION}", f"tensorflow-text=={VERSION}", f"tensorboard=={VERSION}"]
    requirements = os.path.join(ROOT, "requirements.txt")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *older, "-r", requirements], check=True)


def check(models, opened):
    import pathlib

    import tensorflow as tf
    import tensorflow_text

    print(f"tensorflow {tf.__version__}, tensorflow-text {tensorflow_text.__version__}")
    with tempfile.TemporaryDirectory() as scratch:
        if not models:
            from served import KINDS, write_served

            models = [write_served(pathlib.Path(scratch, kind), kind) for kind in KINDS]
        for number, model in enumerate(models):
            output = os.path.join(scratch, f"served_{number}", os.path.basename(os.path.normpath(model)))
            for version, options in enumerate(([], ["--dtype", "bfloat16"]), start=1):
                command = [sys.executable, os.path.join(ROOT, "run.py"), "export", "--model", model, "--output", output]
                subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
                open_version(os.path.join(output, str(version)), "made here " + " ".join(options))
        for folder in opened:
            open_version(folder, "made elsewhere")


def open_version(folder, made):
    import numpy as np
    import tensorflow as tf

    signature = tf.saved_model.load(folder).signatures["serving_default"]
    specs = signature.structured_input_signature[1]
    columns = {1: TEXTS, 2: [[text, "cat"] for text in TEXTS]}  # The latter are choices.
    answers = signature(**{name: tf.constant(columns[spec.shape.rank]) for name, spec in specs.items()})
    numbers = {name: output.numpy() for name, output in answers.items() if output.dtype.is_floating}
    if not all(np.isfinite(values).all() for values in numbers.values()):
        sys.exit(f"{folder}: an answer is not a number")
    shapes = ", ".join(
        f"{name} {list(values.shape)} sum {values.sum():.6f}" for name, values in sorted(numbers.items())
    )
    print(f"{os.path.basename(os.path.dirname(folder))} ({made.strip()}) answers: {shapes}")


def print_ops():
    import tensorflow as tf
    import tensorflow_text
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    for library in glob.glob(os.path.join(os.path.dirname(tensorflow_text.__file__), "python", "ops", "*.so")):
        tf.load_op_library(library)
    ops = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())).op
    print(OPS_HEADER.format(tf.__version__, tensorflow_text.__version__))
    print("\n".join(sorted(op.name for op in ops)))


if __name__ == "__main__":
    main()
