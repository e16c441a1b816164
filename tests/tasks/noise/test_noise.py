"""Noise in texts: as much as asked for, always the same, and counted as it is."""

import difflib

import pytest

from keras_bert.config.finetuning import KINDS
from keras_bert.core.errors import UserError
from keras_bert.tasks.noise import SHAPE, SOUND, Noise, alike_characters

TEXT = " ".join(f"something{number} wonderful, happened" for number in range(400))
CHINESE = "我们请他们去看清楚这个地方的晴天。" * 60


def changed_words(setting):
    before, after = TEXT.split(" "), Noise(setting)(TEXT).split(" ")
    return [(old, new) for old, new in zip(before, after, strict=True) if old != new]


@pytest.mark.parametrize("kind", ["typo", "swap", "case", "homoglyph"])
def test_the_share_of_the_words_is_changed(kind):
    """Otherwise a setting such as `typo=0.3` would not mean what it says."""
    noise = Noise(f"{kind}=0.3")
    noise(TEXT)
    changed = changed_words(f"{kind}=0.3")
    share = len(changed) / len(TEXT.split(" "))
    assert 0.26 < share < 0.34 and noise.shares()["words"] == pytest.approx(share)
    # A swap changes two characters, capitals all letters of a word, and any other typo one.
    letters = {"typo": 1.25, "swap": 2, "case": 10, "homoglyph": 1}[kind]
    assert noise.shares()["characters"] == pytest.approx(letters * len(changed) / len(TEXT), rel=0.15)


def test_typos_are_slips_of_the_finger():
    for old, new in changed_words("typo=0.3"):
        assert abs(len(old) - len(new)) <= 1 and difflib.SequenceMatcher(None, old, new).ratio() > 0.7
    assert all(sorted(old) == sorted(new) for old, new in changed_words("swap=0.3"))
    assert all(old.lower() == new.lower() for old, new in changed_words("case=0.3"))
    assert all(len(old) == len(new) and not new.isascii() for old, new in changed_words("homoglyph=0.3"))


def test_blanks_are_lost_and_added():
    some, added = Noise("nospace=0.25"), Noise("addspace=0.5")
    assert Noise("nospace")("so  it\tgoes\u3000on") == "soitgoeson"
    assert 0.2 < 1 - some(TEXT).count(" ") / TEXT.count(" ") < 0.3 and some(TEXT).replace(" ", "") == TEXT.replace(
        " ", ""
    )
    # A lost blank changes the words on both sides: 1 - 0.75^2.
    assert 0.38 < some.shares()["words"] < 0.5
    assert added(TEXT).replace(" ", "") == TEXT.replace(" ", "") and 0.45 < added.shares()["words"] < 0.55
    assert not {"", "something1wonderful"} & set(added(TEXT).split(" "))


@pytest.mark.parametrize("kind", ["zh-shape", "zh-sound", "zh-drop", "zh-double"])
def test_the_share_of_the_chinese_characters_is_changed(kind):
    """Otherwise Chinese texts would pass unchanged."""
    noise = Noise(f"{kind}=0.2")
    after = noise(CHINESE)
    # Not every character has another that looks or sounds like it.
    assert (0.05 if kind in ("zh-shape", "zh-sound") else 0.15) < noise.shares()["characters"] < 0.25
    assert len(after) - len(CHINESE) == {"zh-drop": -1, "zh-double": 1}.get(kind, 0) * round(
        noise.shares()["characters"] * len(CHINESE)
    )
    # The words of Chinese are its characters; the marks, each ending a sentence, are words too.
    assert noise.shares()["words"] == pytest.approx(noise.shares()["characters"], abs=0.01)
    if kind in ("zh-shape", "zh-sound"):
        alike = alike_characters(kind.removeprefix("zh-"))
        assert all(new == old or new in alike[old] for old, new in zip(CHINESE, after))


def test_the_tables_know_what_looks_and_sounds_alike():
    shape, sound = alike_characters(SHAPE), alike_characters(SOUND)
    assert "未" in shape["末"] and "晴" in shape["睛"] and "己" in shape["已"]
    assert "她" in sound["他"] and "再" in sound["在"] and "青" in sound["清"]
    assert all(char not in others for table in (shape, sound) for char, others in table.items())


@pytest.mark.parametrize("kind", KINDS)
def test_noise_depends_on_the_seed_and_the_text_alone(kind):
    """Otherwise a run could not be repeated, or each batch size would see other noise."""
    text = TEXT + CHINESE
    assert Noise(f"{kind}=0.5")(text) == Noise(f"{kind}=0.5")(text) != text
    assert Noise(f"{kind}=0.5", seed=1)(text) != Noise(f"{kind}=0.5")(text)
    reader = Noise(f"{kind}=0.5")
    reader("some text before")
    assert reader(text) == Noise(f"{kind}=0.5")(text)


def test_words_of_one_letter_and_signs_stay():
    assert Noise("typo=1")("I , a ! 中 ?") == "I , a ! 中 ?"
    assert Noise("zh-drop=1")("I , a !") == "I , a !"


@pytest.mark.parametrize("setting", ["typo=0", "typo=1.5", "typo=x", "nospace=", "rain", ""])
def test_other_settings_are_refused(setting):
    with pytest.raises(UserError, match=r"noise: needs KIND or KIND=SHARE, a kind of typo"):
        Noise(setting)
