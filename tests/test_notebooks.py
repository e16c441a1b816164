"""The notebooks of docs/ run from the first cell to the last, as for a reader who starts them anew."""

import glob
import os
import re
import sys

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from pages import ROOT
from tiny import tiny_config

from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

NOTEBOOKS = sorted(glob.glob(os.path.join(ROOT, "docs", "notebooks", "*.ipynb")))
LARGEST = 200_000  # Bytes: pictures are small.
SETTING = re.compile(r'("?)\b(steps|evaluate_every)("?[=:] ?)(\d+)')


def shorter(found):
    """A twentieth of the steps, and no warm-up, which would take more steps than are left."""
    quote, name, sign, number = found.groups()
    rest = f", {quote}warmup_steps{sign}0" if name == "steps" else ""
    return f"{quote}{name}{sign}{int(number) // 20}{rest}"


def kernel(environment):
    """A kernel of this very Python, whatever kernels the machine has installed."""

    class OwnKernel(KernelManager):
        def format_kernel_cmd(self, extra_arguments=None):
            return [sys.executable, "-m", "ipykernel_launcher", "-f", self.connection_file]

        async def _async_start_kernel(self, **options):
            await super()._async_start_kernel(**{**options, "env": environment})

        start_kernel = _async_start_kernel

    return OwnKernel


@pytest.fixture(scope="module")
def small_model(tmp_path_factory):
    """Replaces the hub's model that a notebook begins with."""
    letters = [chr(code) for code in range(33, 127)]
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)])
    folder = str(tmp_path_factory.mktemp("model"))
    config = tiny_config(vocab_size=len(vocabulary), max_position_embeddings=64)
    write_model_folder(folder, BertForPreTraining(config), vocabulary, lower_case=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=os.path.basename)
def test_every_cell_runs(path, small_model, quick_commands, tmp_path):
    """An error names the cell. What a cell writes stays in its own folder. Pretraining takes a twentieth of the steps;
    the committed outputs show what all of them learn."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.source = SETTING.sub(shorter, cell.source)
    paths = os.pathsep.join([ROOT, os.environ["PYTHONPATH"]])
    environment = {**os.environ, "PYTHONPATH": paths, "MODEL": small_model}
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        kernel_manager_class=kernel(environment),
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    nbformat.validate(notebook)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=os.path.basename)
def test_it_is_committed_with_its_outputs(path):
    """A reader on GitHub sees what came out, without running it."""
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert any(cell.outputs for cell in cells) and os.path.getsize(path) < LARGEST
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    assert "/tmp" not in str(notebook) and "/home/" not in str(notebook) and "/root" not in str(notebook)
