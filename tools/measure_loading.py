"""How long BERT-base takes to load, and how much memory: this package beside transformers, on the same folder.

    pip install -r requirements/bench.txt
    python tools/measure_loading.py [--folder DIR] [--rounds 5] [--format safetensors|bin|legacy-bin]

Without --folder, random weights of BERT-base's size are written: model.safetensors, or pytorch_model.bin in PyTorch's
current layout or the one before 1.6. Every measurement is a process of its own; the two packages take turns. `load` is
the call alone: transformers maps the file and has read almost nothing when it returns, so `load and first text` is
measured too, after which every weight of the encoder has been read.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEXT = "the first text that the model reads"
CALLS = ("ours", "theirs")
FORMATS = ("safetensors", "bin", "legacy-bin")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", help="a model folder; by default one of BERT-base's size is made")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="of the folder that is made")
    parser.add_argument("--measure", choices=CALLS, help=argparse.SUPPRESS)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        write_base(arguments.write)
        return
    if arguments.measure:
        print(json.dumps(measured(arguments.measure, arguments.folder)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder
        if not folder:
            folder = os.path.join(scratch, "base")
            # Not in this process: on Linux, what it holds would count towards the peak of those that it starts.
            in_a_process("--write", folder)
            if arguments.format != FORMATS[0]:
                save_as_torch(folder, arguments.format == "bin")
        rounds = {call: [] for call in CALLS}
        for number in range(arguments.rounds):
            for call in CALLS if number % 2 == 0 else CALLS[::-1]:
                measured_now = in_a_process("--folder", folder, "--measure", call)
                rounds[call].append(json.loads(measured_now.splitlines()[-1]))
        print(f"{folder}: {megabytes(folder):.0f} MiB; medians of {arguments.rounds} rounds, {os.cpu_count()} cores")
        for name, figures in rounds["ours"][0].items():
            for unit in figures:
                ours, theirs = (statistics.median(item[name][unit] for item in rounds[call]) for call in CALLS)
                print(f"{name:<20} {unit:<15} keras_bert {ours:7.3f}   transformers {theirs:7.3f}")


def in_a_process(*options):
    """What this program prints with these options, in a process of its own."""
    command = [sys.executable, os.path.abspath(__file__), *options]
    # The repository, not what happens to be installed, is measured.
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ROOT}
    result = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return result.stdout


def measured(call, folder):
    """`{what: {unit: figure}}`; memory is the peak above the imports."""
    clock = Clock()
    load, encode = {"ours": ours, "theirs": theirs}[call]()
    imports = clock.seconds()
    before, clock = peak(), Clock()
    model = load(folder)
    loaded = clock.seconds()
    encode(model)
    first_text = clock.seconds()
    return {
        "imports": imports,
        "load": loaded,
        "load and first text": first_text,
        "all of it": {name: imports[name] + first_text[name] for name in imports},
        "memory": {"x the file": (peak() - before) / megabytes(folder)},
    }


class Clock:
    def __init__(self):
        self.wall, self.processor = time.perf_counter(), time.process_time()

    def seconds(self):
        return {"s": time.perf_counter() - self.wall, "s of processor": time.process_time() - self.processor}


def megabytes(folder):
    files = [os.path.join(folder, name) for name in ("model.safetensors", "pytorch_model.bin")]
    return sum(os.path.getsize(file) for file in files if os.path.exists(file)) / 2**20


def ours():
    from keras_bert.core.runtime import import_tensorflow

    import_tensorflow()
    from keras_bert.inference.loading import load

    return load, lambda model: model.encode([TEXT])


def theirs():
    import torch
    from transformers import BertForPreTraining, BertTokenizer

    def load(folder):
        return BertTokenizer.from_pretrained(folder), BertForPreTraining.from_pretrained(folder)

    def encode(loaded):
        tokenizer, model = loaded
        with torch.no_grad():
            return model.eval().bert(**tokenizer([TEXT], return_tensors="pt")).last_hidden_state.mean(dim=1)

    return load, encode


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_base(path):
    from keras_bert.core.runtime import import_tensorflow

    import_tensorflow()
    from keras_bert.checkpoints.writing import write_model_folder
    from keras_bert.models.bert.config import BertConfig
    from keras_bert.models.pretraining import BertForPreTraining
    from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

    config = BertConfig()
    letters = [chr(code) for code in range(97, 123)]
    pieces = [*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)]
    pieces += [f"word{number}" for number in range(config.vocab_size - len(pieces))]
    write_model_folder(path, BertForPreTraining(config), Vocabulary(pieces), lower_case=True)


def save_as_torch(folder, is_zip):
    """Replaces model.safetensors by pytorch_model.bin, in its own process: torch and TensorFlow do not share one."""
    program = (
        "import os, sys, torch, safetensors.torch as st; source, target = sys.argv[1:3]; "
        f"torch.save(st.load_file(source), target, _use_new_zipfile_serialization={is_zip}); os.unlink(source)"
    )
    files = [os.path.join(folder, name) for name in ("model.safetensors", "pytorch_model.bin")]
    subprocess.run([sys.executable, "-c", program, *files], check=True)


if __name__ == "__main__":
    main()
