"""The files that TensorFlow Serving is started with, beside a model's versions."""

import os

from keras_bert.files import atomic_write, exists, is_remote, join

MODELS, BATCHING = "models.config", "batching.config"

_MODELS = """\
# tensorflow_model_server --model_config_file={base}/{file}
model_config_list {{
  config {{
    name: "{name}"
    base_path: "{base}"
    model_platform: "tensorflow"
    # The newest version alone; to keep an older one beside it: specific {{ versions: 1 versions: 2 }}
    model_version_policy {{ latest {{ num_versions: 1 }} }}
  }}
}}
"""
_BATCHING = """\
# tensorflow_model_server --enable_batching --batching_parameters_file={base}/{file}
max_batch_size {{ value: 32 }}
# A request waits so long for others; 0 is best where there are few.
batch_timeout_micros {{ value: 1000 }}
max_enqueued_batches {{ value: 100 }}
num_batch_threads {{ value: 4 }}
"""


def model_name(output):
    """What Serving calls the model in a folder: the folder's own name, also of "." and the like."""
    output = os.fspath(output)
    return os.path.basename(os.path.normpath(output if is_remote(output) else os.path.abspath(output)))


def write_serving_files(output):
    """Writes the two files into `output` where they are not; one that somebody has changed stays as it is.

    They say where the server finds the folder: below /models, where the images of Serving look, or in its store.
    """
    name = model_name(output)
    is_elsewhere = is_remote(output) and not os.fspath(output).startswith("file://")
    base = os.fspath(output).rstrip("/") if is_elsewhere else f"/models/{name}"
    for file, content in ((MODELS, _MODELS), (BATCHING, _BATCHING)):
        path = join(output, file)
        if not exists(path):
            with atomic_write(path) as stream:
                stream.write(content.format(name=_escaped(name), base=_escaped(base), file=file))


def _escaped(text):
    """A text as it stands between quotes in protobuf's text format."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
