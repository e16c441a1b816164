"""generation_config.json: how transformers writes texts with a model; older versions say it in config.json."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_json
from keras_bert.models.bert.config import DECODER_TOKENS, BertConfig
from keras_bert.models.kind import kind_of_config

GENERATION = "generation_config.json"


def with_generation(config: BertConfig, folder: files.StrPath) -> BertConfig:
    """The config with the tokens that the folder's generation_config.json names, which take precedence in transformers.

    It is unchanged without a decoder.

    Raises:
        UserError: the file is no JSON object, or names a token by anything but one row of the vocabulary.
    """
    stored = stored_generation(folder).get(GENERATION, {})
    known = {name: stored[name] for name in DECODER_TOKENS if hasattr(config, name) and stored.get(name) is not None}
    try:
        return dataclasses.replace(config, **known) if known and kind_of_config(config).decodes else config
    except ValueError as error:
        raise UserError(f"{files.join(folder, GENERATION)}: {error}") from None


def stored_generation(folder: files.StrPath) -> Mapping[str, Any]:
    """`{the file's name: its content}` of a folder; empty without the file."""
    path = files.join(folder, GENERATION)
    return {GENERATION: read_json(path)} if files.is_file(path) else {}
