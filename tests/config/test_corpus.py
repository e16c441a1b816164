"""The settings of filters: by name, extended, overridden, and what is refused."""

import dataclasses

import pytest

from keras_bert.config.corpus import FilterConfig, extended_filters
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core import settings
from keras_bert.core.errors import UserError

C4 = settings.from_mapping(FilterConfig, extended_filters("c4"))


def filters(recipe=None, **overrides):
    values = {"data": {"filters": recipe}} if recipe else {}
    return PretrainConfig.from_mapping(values, overrides).data.filters


def test_c4_turns_on_every_filter_but_the_list_of_words():
    off = [name for name, value in settings.to_mapping(C4).items() if not value]
    assert off == ["bad_words"] and (C4.min_words, C4.min_sentences, C4.repeated_spans) == (5, 3, 3)


def test_a_recipe_names_filters_or_extends_them(tmp_path):
    assert filters() == FilterConfig()
    assert filters("c4") == filters(**{"data.filters": "c4"}) == C4
    extended = {"extends": "c4", "min_words": 3, "bad_words": "words.txt"}
    mine = filters(extended)
    assert (mine.min_words, mine.bad_words, mine.min_sentences) == (3, "words.txt", 3)
    assert filters("c4", **{"data.filters.min_words": 3, "data.filters.bad_words": "words.txt"}) == mine
    (tmp_path / "mine.yaml").write_text("extends: c4\nmin_words: 3\nbad_words: words.txt\n")
    assert filters(str(tmp_path / "mine.yaml")) == mine
    (tmp_path / "stricter.yaml").write_text("extends: mine.yaml\nmin_words: 5\n")  # In the same folder.
    assert filters(str(tmp_path / "stricter.yaml")) == dataclasses.replace(mine, min_words=5)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("c5", "c5: no such config. Give a file, or one of configs/filters: c4"),
        ({"extends": 4}, "configs/filters: has files with names"),
        ({"curly_brace": True}, "data.filters.curly_brace: no such setting. The nearest is data.filters.curly_braces"),
        ({"min_words": -1}, "data.filters.min_words: needs 0, which turns it off, or more. Received: -1"),
    ],
)
def test_what_filters_refuse(given, told):
    with pytest.raises(UserError, match=told):
        filters(given)


def test_files_that_extend_each_other_are_refused(tmp_path):
    """They must not end in a RecursionError."""
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(f"extends: {other}\n")
    for target in (one, other, "../" + tmp_path.name + "/one.yaml"):
        other.write_text(f"extends: {target}\n")
        with pytest.raises(UserError, match=r"needs `extends` that does not lead back to it. Received: .*other.yaml"):
            filters(str(one))


@pytest.mark.parametrize("source", ["text", "python_documentation"])
def test_text_that_is_not_prepared_from_files_is_not_filtered(source):
    """Otherwise it would be trained on unfiltered, without a word."""
    data = {"source": source, "filters": "c4"}
    with pytest.raises(UserError, match="data.filters: needs source: files"):
        PretrainConfig.from_mapping({"data": data, "objective": {"pair": "none"}})
