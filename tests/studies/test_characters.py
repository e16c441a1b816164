"""Bits per character: the loss of models whose vocabularies cut the text differently."""

import json
import math

import pytest
from prepared import VOCABULARY, prepare, shard_settings

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.core.settings import to_yaml
from keras_bert.data.corpus.held_out import is_validation
from keras_bert.studies.ablation import bits_per_character, held_out_characters, held_out_meta

TEXTS = [f"The cat saw a dog {number}." for number in range(60)]


def run_over(folder):
    """A run's folder as `pretrain` leaves it, as far as the text goes."""
    text = folder / "text.jsonl"
    text.write_text("\n".join(json.dumps({"text": one}) for one in TEXTS))
    changes = {"data.source": "files", "data.files": [str(text)], "data.validation_share": 0.2}
    (folder / "config.yaml").write_text(to_yaml(PretrainConfig.from_file(find_config("pretrain", "demo"), changes)))
    prepare(TEXTS, folder / "data" / "shards", shard_settings(VOCABULARY, True, 0.2))
    return str(folder)


def test_the_loss_is_spread_over_the_characters_of_the_held_out_documents(tmp_path):
    """One bit per piece of several characters is less than one bit per character."""
    run = run_over(tmp_path)
    characters = held_out_characters(run)
    held_out = [text for text in TEXTS if is_validation(text, 0.2)]
    assert characters == sum(map(len, held_out))
    meta = held_out_meta(run)
    pieces = json.loads((tmp_path / "data" / "shards" / "validation" / "meta.json").read_text())["tokens"]
    assert bits_per_character(math.log(2), meta, characters) == pytest.approx(pieces / characters)


def test_a_run_over_prepared_text_has_none(tmp_path):
    """The text may no longer exist."""
    assert held_out_meta(str(tmp_path)) is None
