"""How a model reads its texts: the lengths and the cutting that it was fine-tuned with."""

import contextlib
import dataclasses

from keras_bert.config.checks import require
from keras_bert.errors import UserError

FIELD = "keras_bert"  # config.json's field for what Hugging Face has no name for.
TRUNCATE, HEAD_TAIL, WINDOWS = LONG = ("truncate", "head_tail", "windows")
SHORTEST = 3  # [CLS] and the two [SEP] of a pair.


@contextlib.contextmanager
def named_field(path):
    """Turns a `ValueError` of a setting into a `UserError` that names the config and its field."""
    try:
        yield
    except ValueError as error:
        raise UserError(f"{path}: {FIELD}.{error}") from None


def said_of(cls, fields, path, **otherwise):
    """A dataclass of what a config says in `keras_bert` under its fields' names; `otherwise` where it does not.

    Raises:
        UserError: a value that cannot be.
    """
    said = fields.get(FIELD) or {}
    with named_field(path):
        require(isinstance(said, dict), FIELD, "an object", said)
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(
            **{**otherwise, **{name: value for name, value in said.items() if name in names and value is not None}}
        )


@dataclasses.dataclass(frozen=True)
class ReadingConfig:
    """What config.json says in `keras_bert` about texts.

    Attributes:
        max_length: tokens of a text or a pair, special ones included.
        task: what the model was fine-tuned on, such as "sst-2"; None where the folder does not say.
        long: what becomes of longer texts: `truncate` cuts the end off.
        stride: tokens from one window to the next, for `windows`; else None.
        pair: whether the model takes pairs of texts.
    """

    max_length: int
    task: str | None = None
    long: str = TRUNCATE
    stride: int | None = None
    pair: bool = False

    @classmethod
    def from_fields(cls, fields, max_position_embeddings, path):
        """Of a config's other fields; what is not there is the model's longest, cut at the end, one text.

        Args:
            fields: config.json without the architecture.
            max_position_embeddings: the most tokens of the model.
            path: the config, for messages.

        Raises:
            UserError: a value that cannot be.
        """
        config = said_of(cls, fields, path, max_length=max_position_embeddings)
        with named_field(path):
            config._check(max_position_embeddings)
        return config

    def to_fields(self):
        """What config.json says of it."""
        return {FIELD: {name: value for name, value in vars(self).items() if value is not None}}

    def _check(self, longest):
        is_length = isinstance(self.max_length, int) and SHORTEST <= self.max_length <= longest
        require(is_length, "max_length", f"{SHORTEST} to {longest} tokens", self.max_length)
        require(self.long in LONG, "long", f"one of {', '.join(LONG)}", self.long)
        require(isinstance(self.pair, bool), "pair", "true or false", self.pair)
        is_stride = self.stride is None or isinstance(self.stride, int) and self.stride > 0
        require(is_stride, "stride", "1 token or more", self.stride)
