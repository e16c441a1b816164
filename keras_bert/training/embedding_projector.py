"""Word embeddings for TensorBoard's projector page."""

from collections.abc import Iterable

import numpy as np
from tensorboard.plugins import projector

from keras_bert import files, whole_files
from keras_bert.stores import as_os_errors


def write_embeddings(folder: str, name: str, embeddings: np.ndarray, labels: Iterable[str]) -> None:
    """Writes a table of vectors where TensorBoard finds it.

    Args:
        folder: a folder of TensorBoard events.
        name: the table's name on the page.
        embeddings: float [rows, size].
        labels: one label per row.
    """
    files.make_folder(folder)
    with whole_files.atomic_write(files.join(folder, f"{name}.bytes"), "wb") as stream:
        stream.write(np.ascontiguousarray(embeddings, "float32").tobytes())
    with whole_files.atomic_write(files.join(folder, f"{name}_labels.tsv")) as stream:
        # A line break or a tab in a label would shift all labels after it.
        stream.writelines(" ".join(label.split()) + "\n" for label in labels)
    config = projector.ProjectorConfig()
    config.embeddings.add(
        tensor_name=name, tensor_path=f"{name}.bytes", metadata_path=f"{name}_labels.tsv", tensor_shape=embeddings.shape
    )
    with as_os_errors(folder):
        projector.visualize_embeddings(folder, config)
