"""The texts of a TensorFlow Datasets corpus: `tfds:NAME[/CONFIG][:SPLIT]`."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from keras_bert.data.tfds_builder import open_builder, tfds
from keras_bert.errors import MissingData, UserError, reason

if TYPE_CHECKING:
    import tensorflow as tf

    from keras_bert.data.pipeline.runners import Runner

_ENTRY = re.compile(r"tfds:(.*?)(?::([A-Za-z_]\w*(?:\[[^\]]*\])?(?:\+.+)?))?\Z", re.DOTALL)
_DEFAULT_SPLIT = "train"
_TEXT_FEATURE = "text"


class TfdsText:
    """One split of a TFDS corpus, which is prepared if necessary.

    Its text is the feature `text`, or else the first feature that is a string.

    Args:
        entry: `tfds:NAME[/CONFIG][:SPLIT]`; NAME may also be the folder that a data set was prepared in. The default
            split is `train`.
        runner: prepares a data set that TFDS makes with Apache Beam; see `open_builder`.

    Attributes:
        name: the data set's full name with its version, and the split.
        size: number of examples.
        has_headings: whether the texts are Wikipedia's, with headings and lists among the paragraphs.

    Raises:
        UserError: TFDS has no such data set or split, cannot prepare it, or it has no text.
    """

    name: str
    size: int
    has_headings: bool

    def __init__(self, entry: str, runner: Runner | None = None):
        found = _ENTRY.match(entry)
        assert found is not None, entry
        name, split = found.groups()
        split = split or _DEFAULT_SPLIT
        try:
            self._builder = open_builder(name, runner=runner)
        except MissingData as error:
            raise UserError(f"tfds:{error} Give another tfds:NAME[/CONFIG][:SPLIT], or text files.") from None
        try:
            self.size = self._builder.info.splits[split].num_examples
        except Exception as error:  # Of TFDS's own, for what is no split and for broken instructions.
            raise UserError(
                f"{entry}: needs a split of {', '.join(self._builder.info.splits)} ({reason(error)})."
            ) from None
        self.name = f"{self._builder.info.full_name}:{split}"
        self.has_headings = self._builder.name == "wikipedia"
        self._split = split
        self._feature = self._string_feature(entry)

    def _string_feature(self, entry: str) -> str:
        features = self._builder.info.features
        received = " ".join(str(features).split())
        names = [
            name
            for name, feature in (features.items() if hasattr(features, "items") else ())
            if feature.shape == () and feature.np_dtype in (object, str, bytes)
        ]
        if not names:
            raise UserError(f"{entry}: needs a text feature. Received: {received}. Give another data set.")
        return _TEXT_FEATURE if _TEXT_FEATURE in names else names[0]

    def stored_files(self) -> list[str]:
        """Entries of one stored file each, by folder, which together hold the same texts in the same order."""
        splits = self._builder.info.splits
        entries = []
        for part in tfds.core.ReadInstruction.from_spec(self._split).to_absolute(splits):
            edges = [0, *accumulate(splits[part.splitname].shard_lengths)]
            begin, end = part.from_ or 0, edges[-1] if part.to is None else part.to
            for first, last in pairwise(edges):
                first, last = max(first, begin), min(last, end)
                if first < last:
                    entries.append(f"tfds:{self._builder.data_path}:{part.splitname}[{first}:{last}]")
        return entries

    def dataset(self) -> tf.data.Dataset:
        """The texts in stored order: scalar strings."""
        dataset = self._builder.as_dataset(
            split=self._split,
            decoders=tfds.decode.PartialDecoding({self._feature: True}),
            read_config=tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False),
            shuffle_files=False,
        )
        return dataset.map(lambda example: example[self._feature])
