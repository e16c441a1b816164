"""generation_config.json: how transformers writes texts with a model; older versions say it in config.json."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_bert.core import files, settings
from keras_bert.core.errors import UserError
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import kind_of_config

GENERATION = "generation_config.json"
# Fields that config.json may have too. Those of generation_config.json count, as in transformers.
_OF_CONFIG = ("decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id")


def with_generation(config: BertConfig, folder: files.StrPath) -> BertConfig:
    """The config with what generation_config.json in the folder says instead; unchanged without a decoder.

    Raises:
        UserError: the file is no JSON object, or names a token by something else than one number.
    """
    stored = stored_generation(folder).get(GENERATION, {})
    known = {name: stored[name] for name in _OF_CONFIG if hasattr(config, name) and stored.get(name) is not None}
    try:
        return dataclasses.replace(config, **known) if known and kind_of_config(config).decodes else config
    except ValueError as error:
        raise UserError(f"{files.join(folder, GENERATION)}: {error}") from None


def stored_generation(folder: files.StrPath) -> Mapping[str, Any]:
    """`{the file's name: its content}` of a folder; empty without the file."""
    path = files.join(folder, GENERATION)
    return {GENERATION: settings.read_json(path)} if files.is_file(path) else {}
