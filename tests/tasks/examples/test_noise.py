"""Texts with typing errors in them: as many as asked for, and always the same."""

import difflib

import pytest

from keras_bert.errors import UserError
from keras_bert.tasks.examples.noise import noise

TEXT = " ".join(f"something{number} wonderful, happened" for number in range(400))


def test_the_share_of_the_words_is_mistyped():
    mistyped = noise("typo=0.3")(TEXT)
    before, after = TEXT.split(" "), mistyped.split(" ")
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    # Two neighbours that are the same letter may change places: a few errors do not show.
    assert 0.25 < len(changed) / len(before) < 0.34
    for old, new in changed:
        assert abs(len(old) - len(new)) <= 1 and difflib.SequenceMatcher(None, old, new).ratio() > 0.7


def test_a_text_always_gets_the_same_errors():
    assert noise("typo=0.5")(TEXT) == noise("typo=0.5")(TEXT) != TEXT


def test_words_of_one_letter_and_signs_stay():
    assert noise("typo=1")("I , a ! 中 ?") == "I , a ! 中 ?"


def test_spaces_are_lost():
    assert noise("nospace")("so  it\tgoes\u3000on") == "soitgoeson"


@pytest.mark.parametrize("setting", ["typo", "typo=0", "typo=1.5", "typo=x", "nospace=1", "rain"])
def test_other_settings_are_refused(setting):
    with pytest.raises(UserError, match="noise: needs typo=SHARE"):
        noise(setting)
