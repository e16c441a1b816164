"""Writes the golden arrays: results of PyTorch, transformers, KerasHub and others for the tests to compare with.

    pip install -r requirements/parity.txt
    python tools/goldens tests/goldens

`make test` compares with the committed arrays and needs none of these packages; `make parity` recomputes the arrays and
runs the same tests on them. The same versions write the same bytes every time (except torch_save/*_legacy.bin, where
PyTorch names storages by their addresses). Each .npz lists the versions under `made_with`.

PyTorch and TensorFlow never share a process: on Linux PyTorch comes with triton, and importing triton after TensorFlow
is a segmentation fault. So each implementation computes in its own process, and the tests, which use TensorFlow, read
its files; tests/conftest.py fails a test whose process imports PyTorch.

To compare something new with another implementation:

1. Compute it in `of_torch.py`, `of_transformers.py` or another of `PEERS`, and `arrays.save` the inputs and outputs,
   a few kB.
2. Write the files: `python tools/goldens tests/goldens`.
3. Write a test marked `parity` that takes the fixture `goldens` (a folder) and compares our results.
4. If it needs the other implementation live, such as opening a folder written here, add a command to its script and a
   test marked `live` that runs it with `goldens.run_peer` and checks what it writes. `make test` skips these. Folders
   of another make are a line in `CASES` of `of_model_folders.py`, which makes all of its folders in such a test.
   Folders of sentence-transformers are only live, in `of_sentence_transformers_folders.py`.
"""

import argparse
import os
import subprocess
import sys

PEERS = (
    "of_torch.py",
    "of_torch_optimizers.py",
    "of_torch_save.py",
    "of_transformers.py",
    "of_encoder_decoders.py",
    "of_decoding.py",
    "of_sentence_transformers.py",
    "of_retrieval.py",
    "of_keras_hub.py",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="the folder to write the arrays to, such as tests/goldens")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    here = os.path.dirname(os.path.abspath(__file__))
    for peer in PEERS:
        subprocess.run([sys.executable, os.path.join(here, peer), "make", arguments.folder], check=True)


if __name__ == "__main__":
    main()
