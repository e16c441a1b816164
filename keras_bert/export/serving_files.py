"""The config files for starting TensorFlow Serving, beside a model's versions."""

import os

from keras_bert.files import StrPath, exists, is_remote, join
from keras_bert.whole_files import atomic_write

MODELS, BATCHING = "models.config", "batching.config"

_MODELS = """\
# tensorflow_model_server --model_config_file={base}/{file}
model_config_list {{
  config {{
    name: "{name}"
    base_path: "{base}"
    model_platform: "tensorflow"
    # Only the newest version; to serve an older one too: specific {{ versions: 1 versions: 2 }}
    model_version_policy {{ latest {{ num_versions: 1 }} }}
  }}
}}
"""
_BATCHING = """\
# tensorflow_model_server --enable_batching --batching_parameters_file={base}/{file}
max_batch_size {{ value: 32 }}
# How long a request waits for others; 0 is best if there are few.
batch_timeout_micros {{ value: 1000 }}
max_enqueued_batches {{ value: 100 }}
num_batch_threads {{ value: 4 }}
"""


def model_name(output: StrPath) -> str:
    """The name of the model in Serving: the folder's own name, also for "." and the like."""
    output = os.fspath(output)
    return os.path.basename(os.path.normpath(output if is_remote(output) else os.path.abspath(output)))


def write_serving_files(output: StrPath) -> None:
    """Writes the two files into `output` unless they exist; edited files stay unchanged.

    They name the folder as the server sees it: below /models, as in Serving's images, or at its address in a store.
    """
    name = model_name(output)
    is_elsewhere = is_remote(output) and not os.fspath(output).startswith("file://")
    base = os.fspath(output).rstrip("/") if is_elsewhere else f"/models/{name}"
    for file, content in ((MODELS, _MODELS), (BATCHING, _BATCHING)):
        path = join(output, file)
        if not exists(path):
            with atomic_write(path) as stream:
                stream.write(content.format(name=_escaped(name), base=_escaped(base), file=file))


def _escaped(text: str) -> str:
    """A text escaped for a quoted string in protobuf's text format."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
