"""YAML and JSON files: what they hold, and what is refused."""

import pytest

from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_json, read_yaml


def test_a_key_is_the_text_that_is_written_and_a_merged_one_may_be_replaced(tmp_path):
    """YAML would read the labels yes and 1 as true and 1. x in b is not given twice."""
    path = tmp_path / "some.yaml"
    path.write_text("a: &a {yes: 2, x: 0}\nb: {<<: *a, 1: 3, x: 4}\n", encoding="utf-8")
    assert read_yaml(path) == {"a": {"yes": 2, "x": 0}, "b": {"yes": 2, "x": 4, "1": 3}}


def test_a_key_given_twice_in_json_is_refused_not_dropped(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"a": {"b": 1, "c": 2, "b": 3}}', encoding="utf-8")
    with pytest.raises(UserError, match="config.json: is not valid JSON .'b' is given twice"):
        read_json(path)


def test_json_too_deep_to_be_read_is_refused_like_any_other_that_is_broken(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"a": ' + "[" * 100_000, encoding="utf-8")
    with pytest.raises(UserError, match="config.json: is not valid JSON"):
        read_json(path)
