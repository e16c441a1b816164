"""Texts on which tokenizers differ, as bytes."""

import functools
import random
import unicodedata

# Several texts a line.
# fmt: off
COMPOSED_AND_DECOMPOSED = [
    "café naïve", "cafe\u0301 nai\u0308ve", "a\u0323\u0301b a\u0301\u0323b", "\u0301alone", "ĳ ǅ ŉ ΐ Ǆ",
]
# The last two, one after the other: a mark must not move into the text before.
MARKS_OUT_OF_ORDER = [
    "가\u302e\u302f나", "a\u302e\u0301\u302ab", "x\U0001d16d\U0001d165y", "\u302e start", "a\u094d\u302e\u302fb",
    "a\u302e\u302f\U0001d165b", "a\u302e", "\U0001d165b",
]
FINAL_SIGMA = [
    "ΟΔΥΣΣΕΥΣ ΣΑΣ Σ ΣΣ", "ΑΣ.Α ΑΣ. Α.Σ", "ΑΣ\u0301Α ΑΣ\u0301", "ΑΣ\u00adΑ ΑΣ\u200bΑ ΑΣ\u0000Α",
    "ΑΣ中 中Σ", "ΑΣ'Α ΑΣ'", "1Σ", "Α:Σ", "ΑΣ", "ΣΑ", "ΑΣʰΑ", "Αʰ", "ΑΣ\u2028Α",
]
OTHER_CASES = [
    "İstanbul ISPARTA ıi",
    "STRASSE straße ẞ",
    "½ ² ™ № ﬁ ß Ⅷ ㎏",
    "ＦＵＬＬ　ｗｉｄｔｈ！ ｶﾞ",
    "한국어 텍스트",
    "Ǆungla Ϊ",
]
IDEOGRAPHS = [
    "中文ab中", "a㐀b\U00020000c\U0002a700d\U0002b740e\U0002b820f豈g\U0002f800h", "カタカナ、ひらがな。", "一\U00030000二\u2f00",  # noqa: E501
]
EMOJI = ["👩\u200d👩\u200d👧\u200d👦 👍🏽 ❤\ufe0f", "🇩🇪1\ufe0f\u20e3", "tag\U000e0061\U000e007f"]
CONTROLS = [
    "a\0b", "\0", "a\x01b\x7fc\x85d\x9fe", "a\tb\nc\rd\x0be\x0cf\x1cg", "\ufffda\ufffd", "\ue000\uf8ff\U000f0000",
]
INVISIBLE = [
    "\ufeffbom a\ufeffb", "a\u200bb\u200cc\u200dd\u2060e", "soft\u00adhyphen", "\u202eabc\u202c \u2066x\u2069",
    "\u061cא\u200fב",
]
SPACES = [
    "a\u00a0b\u3000c\u2003d\u202fe\u1680f", "a\u2028b\u2029c", "a\u180eb", "", " ", " \t\n ", " a", "a ",
    "  a  b  ",
]
LONG_WORDS = [
    "x" * 200, "x" * 201, "é" * 200 + " b", "a " + "é" * 201 + " b", "e\u0301" * 201, "中" * 300, "각" * 67 + "a",
    "a." * 300,
]
LONG_WORDS += [
    "x" * 201 + "," + "y" * 200, "\U00010400" * 200, "\U00010400" * 201, "x" * 1000 + "\0" * 5,
    "İ" * 150 + " " + "Σ" * 201,
]
SYNTAX = [
    "[MASK] [CLS][SEP] [UNK] [PAD]", "##a a##b # ## ###", "don't (stop) a-b_c $3.50 <>=~`|^+", "unaffable affable",
    "«q» „x“ ¿y? 𐄀z",
]
INVALID_UTF8 = [
    b"a\xffb", b"\x80", b"a\xc3", b"\xc3(", b"\xe2\x82", b"a\xe2\x28\xa1b", b"\xe2\x82(", b"\xf0\x9f\x98",
    b"\xf0\x28\x8c\xbc", b"\xf0\x9f\x98\x80\x80a", b"\xc0\xafa", b"\xc1\xbf", b"\xe0\x80\xafa", b"\xe0\x9f\xbf",
    b"\xf0\x80\x80\xafa", b"\xf0\x8f\xbf\xbf", b"a\xed\xa0\x80b", b"\xed\xa0\xbd\xed\xb8\x80", b"\xed\xbf\xbf",
    b"\xf4\x90\x80\x80a", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80a", b"\xfc\x84\x80\x80\x80\x80", b"\xfe\xff",
    b"\xef\xbb\xbfbom", b"\xef\xbb", b"\xef\xbf\xbe\xef\xbf\xbf", b"a\xe4\xb8\xc3\xa9", b"\xe4\xb8\xe4\xb8\xad",
]

HOSTILE = [
    text.encode("utf-8")
    for texts in (
        COMPOSED_AND_DECOMPOSED, MARKS_OUT_OF_ORDER, FINAL_SIGMA, OTHER_CASES, IDEOGRAPHS, EMOJI, CONTROLS, INVISIBLE,
        SPACES, LONG_WORDS, SYNTAX,
    )
    for text in texts
] + INVALID_UTF8


@functools.cache
def _known_to_unicode_3_2():
    category = unicodedata.ucd_3_2_0.category
    return [chr(code) for code in range(0x110000) if category(chr(code)) not in ("Cn", "Co", "Cs")]


def random_hostile(count, seed):
    """Mixtures of the characters above and others in Unicode 3.2, some with bytes broken or missing."""
    generator = random.Random(seed)
    own = "".join(sorted(set(b"".join(HOSTILE).decode("utf-8", "ignore"))))
    others, texts = _known_to_unicode_3_2(), []
    for _ in range(count):
        length = generator.randrange(60)
        text = "".join(generator.choice(own if generator.random() < 0.8 else others) for _ in range(length))
        data = bytearray(text.encode("utf-8"))
        for _ in range(generator.choice((0, 0, 1, 3)) if data else 0):
            data[generator.randrange(len(data))] = generator.randrange(256)
        texts.append(bytes(data[: len(data) - generator.randrange(2)]))
    return texts
