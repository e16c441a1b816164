"""Writes the golden arrays: what PyTorch, transformers and KerasHub compute, for the tests to compare with.

    pip install -r requirements/parity.txt
    python tools/goldens tests/goldens

`make test` compares with the committed arrays and installs none of these packages; `make parity` makes the arrays
afresh and runs the same tests on them. Made twice by the same versions, the files are equal byte for byte (but for
torch_save/*_legacy.bin, where PyTorch names storages by their addresses); each .npz says the versions (`made_with`).

PyTorch and TensorFlow never share a process: on Linux PyTorch brings triton, and importing triton after TensorFlow is a
segmentation fault. So every peer computes in a process of its own, and the tests (TensorFlow) see only its files;
tests/conftest.py fails a test whose process imports PyTorch.

To compare something new with another implementation:

1. Compute it with theirs in `of_torch.py`, `of_transformers.py` or `of_keras_hub.py`; `arrays.save` the inputs and the
   outputs, a few kB.
2. Make the files: `python tools/goldens tests/goldens`.
3. Write the test: marked `parity`, it takes the fixture `goldens` (a folder) and computes the same with ours.
4. What can only be shown live, such as that theirs opens a folder that ours wrote, is a command of the peer's script
   and a test marked `live`, which runs it by `goldens.run_peer` and compares what it wrote. `make test` skips it.
"""

import argparse
import os
import subprocess
import sys

PEERS = ("of_torch.py", "of_torch_save.py", "of_transformers.py", "of_keras_hub.py")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="where the arrays go, such as tests/goldens")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    here = os.path.dirname(os.path.abspath(__file__))
    for peer in PEERS:
        subprocess.run([sys.executable, os.path.join(here, peer), "make", arguments.folder], check=True)


if __name__ == "__main__":
    main()
