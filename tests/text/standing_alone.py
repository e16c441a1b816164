"""What is asked of both tokenizers in plain Python beside those in the graph."""

import json
import os
import shutil
import subprocess
import sys

from keras_bert.inputs.rows import PieceSpans, padded_rows
from keras_bert.inputs.windows import fit_rows


def assert_rows_as_in_the_graph(graph, plain, texts, max_length):
    """Rows of single texts and of pairs, truncated."""
    for first in texts:
        for second in (None, *texts):
            columns = [PieceSpans.of(graph.tokenize([text])) for text in (first, second) if text is not None]
            segments, _ = fit_rows(columns, max_length, "truncate", None, graph.vocabulary)
            rows = padded_rows(segments, graph.vocabulary)
            expected = {name: value.numpy().tolist() for name, value in rows.items()}
            assert plain.encode(first, second, max_length) == expected, (first, second)


def ids_alone(kind, text, folder):
    """Ids of a text by a copy of a tokenizer's module in the folder of its vocabulary, in a process that can import
    nothing but the standard library."""
    module = sys.modules[kind.__module__]
    shutil.copy(module.__file__, folder / "tokenizer.py")
    shutil.copy(module.FILE, folder)
    program = (
        "import sys\n"
        f"from tokenizer import {kind.__name__} as Tokenizer\n"
        f"print(Tokenizer.from_folder('.').tokenize({text!a}))\n"
        "foreign = [name for name in sys.modules if '.' not in name and name not in sys.stdlib_module_names]\n"
        "assert set(foreign) <= {'tokenizer', '__main__'}, foreign\n"
    )
    command = [sys.executable, "-S", "-c", program]
    output = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
    assert output.returncode == 0, output.stderr
    return json.loads(output.stdout)
