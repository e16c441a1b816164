"""The features of a frozen BERT for the rows of a run: found on disk, or computed once."""

import dataclasses
import hashlib

import numpy as np
import tensorflow as tf

from keras_bert.checkpoints.names import ENCODER, model_parts
from keras_bert.data.batches.feature_files import FeatureRoom, feature_bytes, megabytes
from keras_bert.data.batches.length_batches import every_row_once
from keras_bert.data.batches.static_shapes import FEW_SHAPES, choose_widths
from keras_bert.errors import UserError
from keras_bert.terminal_bar import terminal_bar
from keras_bert.training.strategy import tf_config_workers


class FrozenFeatures:
    """What a `BertFeatureTagger` computes of rows, kept in a folder.

    Args:
        model: the `BertFeatureTagger`.
        strategy: the `tf.distribute.Strategy` in whose scope it was made, of one process.
        batch_size: rows at once.
        pad_id: the id of [PAD].
        folder: where the files are kept.
        report: takes one line of text at a time.
    """

    def __init__(self, model, strategy, batch_size, pad_id, folder, report):
        self._model, self._strategy, self._report = model, strategy, report
        self._batch_size, self._pad_id = batch_size, pad_id
        self._room = FeatureRoom(folder)
        self._encoder = {
            "encoder": _encoder_digest(model),
            "config": dataclasses.asdict(model.config),
            "precision": model.dtype_policy.name,
            "layers": model.feature_layers,
        }

    def give(self, rows):
        """Gives `TokenRows` their features, as `token_files`; those of several splits, `{split: TokenRows}`.

        Raises:
            UserError: there is no room for them on the disk.
        """
        with self._room.alone(self._report):
            missing = {split: of_split for split, of_split in rows.items() if not self._found(split, of_split)}
            size = sum(feature_bytes(self._shape(of_split)) for of_split in missing.values())
            if missing:
                tokens = sum(len(of_split.ids) for of_split in missing.values())
                self._report(
                    f"Features of {tokens:,} tokens ({', '.join(missing)}), {megabytes(size)}, are computed once and "
                    f"kept in {self._room.path}."
                )
                self._room.require_space(size)
            lengths = [of_split.lengths for of_split in missing.values()]
            widths = choose_widths(np.concatenate(lengths), FEW_SHAPES) if missing else []
            for split, of_split in missing.items():
                self._compute(split, of_split, widths)
                self._found(split, of_split)

    @tf.function(autograph=False)
    def _features(self, batch):
        return self._strategy.run(self._model.frozen_features, (batch,))

    def _found(self, split, rows):
        rows.token_files.pop("features", None)
        found = self._room.open(split, self._made_of(rows), self._shape(rows), self._report)
        if found:
            self._report(f"The features of {split} are read from {found.path}.")
            rows.token_files["features"] = found
        return found is not None

    def _shape(self, rows):
        return (len(rows.ids), len(self._model.feature_layers), self._model.config.hidden_size)

    def _made_of(self, rows):
        digest = hashlib.sha256()
        for values in (rows.ids, rows.starts, rows.second_starts):
            digest.update(f"{values.dtype} {values.shape}".encode() + values.tobytes())
        return {**self._encoder, "rows": digest.hexdigest()}

    def _compute(self, split, rows, widths):
        strategy = self._strategy
        batches = every_row_once(rows, self._batch_size, self._pad_id, widths)

        with (
            self._room.writing(split, self._made_of(rows), self._shape(rows)) as write,
            terminal_bar(f"Features of {split}", "rows", len(rows)) as bar,
        ):
            for batch in strategy.experimental_distribute_dataset(batches):
                states = strategy.gather(self._features(batch), axis=0).numpy()
                numbers = strategy.gather(batch["row_numbers"], axis=0).numpy()
                for number, of_row in zip(numbers, states):
                    if number >= 0:
                        first, end = rows.starts[number : number + 2]
                        write(int(first), of_row[: end - first])
                bar.update(int((numbers >= 0).sum()))


def require_one_process():
    """Raises `UserError` among several workers, of which each would need the files of features."""
    workers = len(tf_config_workers())
    if workers > 1:
        raise UserError(f"features: need one process. Received: {workers} workers. Take --strategy one or mirrored.")


def _encoder_digest(model):
    """SHA-256 of the encoder's weights, which all that it gives depends on."""
    digest = hashlib.sha256()
    for name, variable in model_parts(model)[ENCODER]:
        digest.update(name.attribute.encode() + variable.numpy().tobytes())
    return digest.hexdigest()
