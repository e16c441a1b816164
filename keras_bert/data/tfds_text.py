"""The texts of a TensorFlow Datasets corpus: `tfds:NAME[/CONFIG][:SPLIT]`."""

import re

from keras_bert.errors import UserError
from keras_bert.extras import import_extra
from keras_bert.files import is_folder, is_remote

tfds = import_extra("tensorflow_datasets", "A corpus of TensorFlow Datasets")

_ENTRY = re.compile(r"tfds:(.*?)(?::([A-Za-z_]\w*(?:\[[^\]]*\])?(?:\+.+)?))?\Z", re.DOTALL)
_DEFAULT_SPLIT = "train"
_TEXT_FEATURE = "text"


class TfdsText:
    """One split of a TFDS corpus, prepared if it is not yet.

    Attributes:
        name: the data set's full name with its version, and the split.
        size: number of examples.
    """

    def __init__(self, entry):
        """`entry`: `tfds:NAME[/CONFIG][:SPLIT]`; NAME may also be the folder that a data set was prepared in.

        The split is `train` unless given. The feature is `text`, or the first one that is a string.

        Raises:
            UserError: TFDS knows no such data set or split, cannot prepare it, or it holds no text.
        """
        name, split = _ENTRY.match(entry).groups()
        split = split or _DEFAULT_SPLIT
        try:
            if is_folder(name) or is_remote(name):
                self._builder = tfds.builder_from_directory(name)
            else:
                self._builder = tfds.builder(name)
                self._builder.download_and_prepare()
            self.size = self._builder.info.splits[split].num_examples
        except Exception as error:  # TFDS raises nearly anything: of the network, of a missing package, its own.
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise UserError(
                f"{entry}: needs a data set and a split that tensorflow_datasets can prepare. Received: {reason}. "
                "Check the name (tfds:NAME/CONFIG:SPLIT), or give text files."
            ) from None
        self.name = f"{self._builder.info.full_name}:{split}"
        self._split = split
        self._feature = self._string_feature(entry)

    def _string_feature(self, entry):
        features = self._builder.info.features
        received = " ".join(str(features).split())
        names = [
            name
            for name, feature in (features.items() if hasattr(features, "items") else ())
            if feature.shape == () and feature.np_dtype in (object, str, bytes)
        ]
        if not names:
            raise UserError(f"{entry}: needs a feature of text. Received: {received}. Give another data set.")
        return _TEXT_FEATURE if _TEXT_FEATURE in names else names[0]

    def dataset(self):
        """The texts in their stored order: a `tf.data.Dataset` of string `[]`."""
        dataset = self._builder.as_dataset(
            split=self._split,
            decoders=tfds.decode.PartialDecoding({self._feature: True}),
            read_config=tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False),
            shuffle_files=False,
        )
        return dataset.map(lambda example: example[self._feature])
