"""Writing a model's next version for TensorFlow Serving."""

import tensorflow as tf

from keras_bert.export.serving_files import model_name, write_serving_files
from keras_bert.export.warm_up import write_warm_up
from keras_bert.files import join, list_folder, make_folder, whole_folder
from keras_bert.locks import NAME, taken
from keras_bert.stores import as_os_errors


def write_version(output, function, report=print):
    """Writes `output/<version>/`, one above the highest that is there, whole or not at all.

    Serving looks into the folder all the time and takes every name that is a number, so that the version is written
    under another name beside it. In a store it gets its name file by file, saved_model.pb last; until then Serving
    finds no model in it and looks again.

    Args:
        output: the model's folder, whose name is also the model's.
        function: a `ServingFunction`.
        report: takes a line of text where another export into the folder must be waited for.

    Returns: the version's path.
    """
    make_folder(output)
    write_serving_files(output)
    with taken(join(output, NAME), report):
        version = join(output, str(next_version(output)))
        with whole_folder(version, last="saved_model.pb") as aside, as_os_errors(output):
            tf.saved_model.save(function.tracked(), aside, signatures=function.signatures)
            write_warm_up(aside, model_name(output), function.inputs, function.reader)
    return version


def next_version(output):
    """One above the highest version in a folder; 1 where there is none."""
    return 1 + max((int(name) for name in list_folder(output) if name.isdecimal()), default=0)
