"""Tokenizer files that transformers itself writes, in every combination of settings, give its ids here."""

import glob
import json
import os
import random
import re

import goldens
import pytest
from hostile_texts import HOSTILE

from keras_bert.text.standalone_tokenizer import StandaloneTokenizer
from keras_bert.text.tokenizers import make_tokenizer
from keras_bert.text.vocabulary import Vocabulary, read_tokenizer_settings, vocabulary_file

ATOMS = [
    *["<ent>", "<ENT>", "ab", "theory", "the", "[E1]", "É", "中文", "a b", "<e> ", "ent", "##ab", "x-", "E\u0301", "ß"],
    *"abeXé中一-_², \t\n한İ",
    *["  ", "\u0301", "\u200b", "\xa0", "ⓐ", "\u200d", "日", "ÀB", "x" * 90],
]


# Where `tokenizers` differs from Google: the final sigma, private characters, a range of ideographs.
_DIFFER = re.compile("Σ|\\[MASK|[\ue000-\uf8ff\U0002b820-\U0002ceaf]")


def texts():
    """Texts without BERT's own special tokens or words of more than transformers' 100 characters."""
    generator = random.Random(6)
    mixed = ["".join(generator.choices(ATOMS, k=generator.randrange(10))) for _ in range(300)]
    hostile = [text.decode("utf-8", "ignore") for text in HOSTILE if len(text) < 100]
    return mixed + [text for text in hostile if not _DIFFER.search(text)]


@pytest.mark.live
def test_folders_of_transformers(tmp_path):
    """Files that we read otherwise would silently give a model other tokens than it was trained on."""
    folder, given = tmp_path / "folders", tmp_path / "texts.json"
    given.write_text(json.dumps(texts()))
    goldens.run_peer("of_tokenizers.py", "make", folder, given)
    paths, wrong, told = sorted(glob.glob(f"{folder}/*")), [], 0
    for path in paths:
        with open(os.path.join(path, "ids.json"), encoding="utf-8") as stream:
            expected = json.load(stream)
        settings, notes = read_tokenizer_settings(path)
        vocabulary = Vocabulary.from_file(vocabulary_file(path))
        ours = make_tokenizer(vocabulary, settings)(texts()).to_list()
        told += len(notes)
        wrong += [
            (os.path.basename(path), text, row, theirs)
            for text, row, theirs in zip(texts(), ours, expected, strict=True)
            if row != theirs
        ]
        values = settings.in_effect(vocabulary)
        plain = StandaloneTokenizer(vocabulary.tokens[: vocabulary.num_pieces], **values, added=vocabulary.added)
        assert [plain.tokenize(text) for text in texts()] == ours, path
    assert len(paths) == 60 and told > 20 and not wrong, (len(wrong), wrong[:5])
