"""Writes a model's next version for TensorFlow Serving."""

from collections.abc import Callable

import tensorflow as tf

from keras_bert.export.serving_files import model_name, write_serving_files
from keras_bert.export.serving_function import ServingFunction
from keras_bert.export.warm_up import write_warm_up
from keras_bert.files import StrPath, join, list_folder, make_folder
from keras_bert.locks import NAME, taken
from keras_bert.stores import as_os_errors
from keras_bert.whole_files import whole_folder


def write_version(output: StrPath, function: ServingFunction, report: Callable[[str], object] = print) -> str:
    """Writes `output/<version>/`, one above the highest existing version, whole or not at all.

    Serving polls the folder and loads every name that is a number, so the version is first written under another name.
    In a store its files are renamed one by one, saved_model.pb last; until then Serving finds no model and polls again.

    Args:
        output: the model's folder, whose name is also the model's.
        function: the model's signatures.
        report: receives a line of text if it has to wait for another export into the folder.

    Returns: the path of the version.
    """
    make_folder(output)
    write_serving_files(output)
    with taken(join(output, NAME), report):
        version = join(output, str(next_version(output)))
        with whole_folder(version, last="saved_model.pb") as aside, as_os_errors(output):
            with function.tracked() as holder:
                tf.saved_model.save(holder, aside, signatures=function.signatures)
            write_warm_up(aside, model_name(output), function.inputs, function.text_inputs)
    return version


def next_version(output: StrPath) -> int:
    """One above the highest version in a folder; 1 if there is none."""
    return 1 + max((int(name) for name in list_folder(output) if name.isdecimal()), default=0)
