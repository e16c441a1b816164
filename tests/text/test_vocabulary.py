import hashlib

import pytest

from keras_bert.core.errors import UserError
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

TOKENS = [*SPECIAL_TOKENS, "a", "##b", "\u2028", "\x85", "中"]


def write(folder, content):
    path = folder / "vocab.txt"
    path.write_bytes(content)
    return str(path)


def test_only_newline_ends_a_line(tmp_path):
    """BERT's Chinese vocabulary holds U+2028 as a piece; splitlines() would shift every id behind it."""
    path = write(tmp_path, "\n".join(TOKENS).encode())
    assert Vocabulary.from_file(path).tokens == TOKENS


def test_carriage_return_at_the_end_of_a_line_is_taken_off(tmp_path):
    path = write(tmp_path, "".join(f"{token}\r\n" for token in TOKENS).encode())
    assert Vocabulary.from_file(path).tokens == TOKENS


def test_a_byte_order_mark_is_no_part_of_the_first_piece(tmp_path):
    """Editors of Windows write it, and [PAD] was missed."""
    (tmp_path / "vocab.txt").write_bytes(b"\xef\xbb\xbf[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\n")
    assert Vocabulary.from_file(str(tmp_path / "vocab.txt")).tokens == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_ids_follow_the_rows():
    vocabulary = Vocabulary(["a", *reversed(SPECIAL_TOKENS), "##b"])
    assert [vocabulary.ids[token] for token in vocabulary.tokens] == list(range(len(vocabulary))) == list(range(7))
    names = ("pad_id", "unk_id", "cls_id", "sep_id", "mask_id")
    assert [getattr(vocabulary, name) for name in names] == [5, 4, 3, 2, 1]
    assert vocabulary.is_continuation.tolist() == [False] * 6 + [True]


def test_file_round_trip_and_fingerprint(tmp_path):
    """The fingerprint is that of the written file, and sees a change of order."""
    path = str(tmp_path / "out.txt")
    vocabulary = Vocabulary(TOKENS)
    vocabulary.to_file(path)
    again = Vocabulary.from_file(path)
    assert again.tokens == TOKENS
    with open(path, "rb") as stream:
        assert again.fingerprint == vocabulary.fingerprint == hashlib.sha256(stream.read()).hexdigest()
    assert Vocabulary([*TOKENS[:-2], TOKENS[-1], TOKENS[-2]]).fingerprint != vocabulary.fingerprint


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("\n".join([*TOKENS, "a"]).encode(), "'a' in lines 6, 11"),
        ("\n".join([*TOKENS, "", "z"]).encode(), "line 11 is empty"),
        ("\n".join(TOKENS).encode() + b"\n\n", "line 11 is empty"),
        ("\n".join(TOKENS[:3]).encode(), "without [SEP] [MASK]"),
        (b"", "without [PAD]"),
        ("\n".join([*TOKENS, "x" * 257]).encode(), "in line 11"),
        ("\n".join([*TOKENS, "x\0y"]).encode(), "in line 11"),
        ("\n".join(TOKENS).encode() + b"\n\xff\xfe\n", "in line 11"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused_by_name(tmp_path, content, told):
    path = write(tmp_path, content)
    with pytest.raises(UserError) as error:
        Vocabulary.from_file(path)
    assert path in str(error.value) and told in str(error.value) and "\n" not in str(error.value)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(UserError, match="nowhere.txt"):
        Vocabulary.from_file(str(tmp_path / "nowhere.txt"))
