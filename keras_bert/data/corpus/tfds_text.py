"""The texts of a TensorFlow Datasets corpus: `tfds:NAME[/CONFIG][:SPLIT]`."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from keras_bert.data.tfds_builder import open_entry, tfds
from keras_bert.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf

    from keras_bert.data.pipeline.runners import Runner

TEXT_FEATURE = "text"


class TfdsText:
    """One split of a TFDS corpus, which is prepared if necessary.

    Args:
        entry: `tfds:NAME[/CONFIG][:SPLIT]`; NAME may also be the folder that a data set was prepared in. The default
            split is `train`.
        runner: prepares a data set that TFDS makes with Apache Beam; see `open_builder`.
        text: the feature with the text; the default is the feature `text`, or else the first that is a string.

    Attributes:
        name: the data set's full name with its version, and the split.
        size: number of examples.
        has_headings: whether the texts are Wikipedia's, with headings and lists among the paragraphs.

    Raises:
        UserError: TFDS has no such data set or split, cannot prepare it, or it has no such text.
    """

    name: str
    size: int
    has_headings: bool

    def __init__(self, entry: str, runner: Runner | None = None, text: str = TEXT_FEATURE):
        self._builder, split, self.size = open_entry(entry, runner)
        self.name = f"{self._builder.info.full_name}:{split}"
        self.has_headings = self._builder.name == "wikipedia"
        self._split = split
        self._feature = self._string_feature(entry, text)

    def _string_feature(self, entry: str, wanted: str) -> str:
        features = self._builder.info.features
        received = " ".join(str(features).split())
        names = [
            name
            for name, feature in (features.items() if hasattr(features, "items") else ())
            if feature.shape == () and feature.np_dtype in (object, str, bytes)
        ]
        if wanted in names:
            return wanted
        if not names or wanted != TEXT_FEATURE:
            raise UserError(
                f"{entry}: needs a text feature {wanted!r}. Received: {received}. Name another with --text (data.text)."
            )
        return names[0]

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
