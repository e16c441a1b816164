"""The features that a frozen BERT computes for the rows of a run: computed once, then read from disk."""

import dataclasses
import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert.core.errors import UserError
from keras_bert.core.terminal_bar import terminal_bar
from keras_bert.data.batches.feature_files import FeatureRoom, feature_bytes, megabytes
from keras_bert.data.batches.length_batches import FEW_SHAPES, choose_widths, every_row_once
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.models.tensor_names import ENCODER, model_parts
from keras_bert.tasks.tagging.feature_network import BertFeatureTagger
from keras_bert.training.cluster import worker_addresses
from keras_bert.training.step import Batch, gathered
from keras_bert.training.strategy import distribute

_log = logging.getLogger(__name__)


class FrozenFeatures:
    """The features of a `BertFeatureTagger`, kept in a folder.

    Args:
        strategy: the strategy in whose scope the model was made; with one process.
        batch_size: rows per batch.
        folder: where the files are kept.
    """

    def __init__(
        self, model: BertFeatureTagger, strategy: tf.distribute.Strategy, batch_size: int, pad_id: int, folder: str
    ):
        self._model, self._strategy = model, strategy
        self._batch_size, self._pad_id = batch_size, pad_id
        self._room = FeatureRoom(folder)
        self._encoder = {
            "encoder": _encoder_digest(model),
            "config": dataclasses.asdict(model.config),
            "precision": model.dtype_policy.name,
            "layers": model.feature_layers,
        }

    def give(self, splits: Mapping[str, TokenRows]) -> None:
        """Adds the features to the rows of each split, as `token_files`.

        Raises:
            UserError: there is not enough space on the disk.
        """
        with self._room.alone():
            missing = {split: rows for split, rows in splits.items() if not self._found(split, rows)}
            if not missing:
                return
            size = sum(feature_bytes(self._shape(rows)) for rows in missing.values())
            tokens = sum(len(rows.ids) for rows in missing.values())
            _log.info(
                f"Features of {tokens:,} tokens ({', '.join(missing)}), {megabytes(size)}, are computed once and "
                f"kept in {self._room.path}."
            )
            self._room.require_space(size)
            widths = choose_widths(np.concatenate([rows.lengths for rows in missing.values()]), FEW_SHAPES)
            for split, rows in missing.items():
                self._compute(split, rows, widths)
                self._found(split, rows)

    @tf.function(autograph=False)
    def _features(self, batch: Batch) -> tf.Tensor:
        return self._strategy.run(self._model.frozen_features, (batch,))

    def _found(self, split: str, rows: TokenRows) -> bool:
        rows.token_files.pop("features", None)
        found = self._room.open(split, self._made_of(rows), self._shape(rows))
        if found:
            _log.info(f"The features of {split} are read from {found.path}.")
            rows.token_files["features"] = found
        return found is not None

    def _shape(self, rows: TokenRows) -> tuple[int, int, int]:
        return (len(rows.ids), len(self._model.feature_layers), self._model.config.hidden_size)

    def _made_of(self, rows: TokenRows) -> dict[str, Any]:
        return {**self._encoder, "rows": rows.fingerprint()}

    def _compute(self, split: str, rows: TokenRows, widths: Sequence[int]) -> None:
        strategy = self._strategy
        batches = every_row_once(rows, self._batch_size, self._pad_id, widths)

        with (
            self._room.writing(split, self._made_of(rows), self._shape(rows)) as write,
            terminal_bar(f"Features of {split}", "rows", len(rows)) as bar,
        ):
            for batch in distribute(strategy, batches):
                states = gathered(strategy, self._features(batch))
                numbers = gathered(strategy, batch["row_numbers"])
                for number, row_states in zip(numbers, states):
                    if number >= 0:
                        first, end = rows.starts[number : number + 2]
                        write(int(first), row_states[: end - first])
                bar.update(int((numbers >= 0).sum()))


def require_one_process() -> None:
    """Raises `UserError` if the run has several workers, each of which would need the files of features."""
    workers = len(worker_addresses())
    if workers > 1:
        raise UserError(f"features: need one process. Received: {workers} workers. Use --strategy one or mirrored.")


def _encoder_digest(model: BertFeatureTagger) -> str:
    """SHA-256 of the encoder's weights."""
    digest = hashlib.sha256()
    for name, variable in model_parts(model)[ENCODER]:
        digest.update(name.attribute.encode() + variable.numpy().tobytes())
    return digest.hexdigest()
