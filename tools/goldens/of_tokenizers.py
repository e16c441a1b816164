"""transformers' tokenizer folders of many configurations, with the ids they give. See `__main__.py`.

python tools/goldens/of_tokenizers.py make FOLDER TEXTS  writes a folder with ids.json for each configuration; TEXTS is
                                                         a JSON file with a list of texts
python tools/goldens/of_tokenizers.py ids FOLDER TEXTS TO  writes what the tokenizer in a folder makes of texts
"""

import itertools
import json
import os
import random
import sys
from typing import Any

import transformers
from tokenizers import AddedToken
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# No spaces: transformers strips them from the lines of vocab.txt, which would shift later ids.
LETTERS = [chr(code) for code in range(33, 0x250) if not chr(code).isspace()] + [*"中文一，。한€"]
PIECES = list(dict.fromkeys([*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), "the", "ent", "##ab", "[E1]"]))
ADDED = ["<ent>", "<Ent>", "ab", "theory", "[E1]", "É", "中文", "a b", "<e> ", "ent", "##ab", "x-"]
FLAGS = ("single_word", "lstrip", "rstrip", "normalized")
CASES = list(itertools.product((True, False), (None, True, False), (True, False)))


def tokenizer(case: int) -> transformers.BertTokenizer:
    """A tokenizer with the settings of a case and some added tokens with some flags."""
    lower_case, strip_accents, split_chinese = CASES[case % len(CASES)]
    made = transformers.BertTokenizer(
        vocab={piece: row for row, piece in enumerate(PIECES)},
        do_lower_case=lower_case,
        strip_accents=strip_accents,
        tokenize_chinese_chars=split_chinese,
    )
    generator = random.Random(case)
    for content in generator.sample(ADDED, case % 6):
        flags = {flag: generator.random() < 0.4 for flag in FLAGS}
        made.add_tokens([AddedToken(content, special=generator.random() < 0.3, **flags)])
    return made


def change(folder: str, name: str, **values: Any) -> None:
    """Changes the top level of a JSON file; ... removes a key."""
    path = os.path.join(folder, name)
    with open(path, encoding="utf-8") as stream:
        content = json.load(stream)
    with open(path, "w", encoding="utf-8") as stream:
        json.dump({key: value for key, value in {**content, **values}.items() if value is not ...}, stream)


def write(folder: str, kind: str, case: int) -> None:
    """Writes the files of a tokenizer.

    Its own class's; a generic class's; in the older format, of the slow class; with a tokenizer_config.json that says
    nothing, so that it disagrees with tokenizer.json in most cases, or says the opposite.
    """
    made = tokenizer(case)
    if kind == "slow":
        os.makedirs(folder)
        vocabulary = os.path.join(folder, "vocab.txt")
        with open(vocabulary, "w", encoding="utf-8") as stream:
            stream.writelines(f"{piece}\n" for piece in PIECES)
        lower_case, strip_accents, split_chinese = CASES[case % len(CASES)]
        slow = BertTokenizerLegacy(
            vocabulary, do_lower_case=lower_case, strip_accents=strip_accents, tokenize_chinese_chars=split_chinese
        )
        slow.add_tokens(
            [token for _, token in sorted(made.added_tokens_decoder.items()) if token.content not in SPECIAL]
        )
        slow.save_pretrained(folder)
        change(folder, "tokenizer_config.json", tokenizer_class="BertTokenizer")
        if case % 2:  # As before transformers 4.34.
            change(folder, "tokenizer_config.json", added_tokens_decoder=...)
    elif kind == "generic":
        transformers.PreTrainedTokenizerFast(tokenizer_object=made._tokenizer).save_pretrained(folder)
        change(folder, "tokenizer_config.json", do_lower_case=case % 2 > 0, strip_accents=True)
    else:
        made.save_pretrained(folder)
    config = "tokenizer_config.json"
    if kind == "silent":
        change(folder, config, do_lower_case=..., strip_accents=..., tokenize_chinese_chars=...)
    if kind == "opposite":
        change(folder, config, do_lower_case=not made.do_lower_case, tokenize_chinese_chars=case % 2 > 0)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as stream:
        json.dump({"model_type": "bert"}, stream)


def make(folder: str, texts_file: str) -> None:
    """Writes all folders, each with the ids of the texts in ids.json."""
    with open(texts_file, encoding="utf-8") as stream:
        texts = json.load(stream)
    for kind in ("own", "generic", "slow", "silent", "opposite"):
        for case in range(len(CASES)):
            path = os.path.join(folder, f"{kind}_{case}")
            write(path, kind, case)
            found = transformers.AutoTokenizer.from_pretrained(path)
            with open(os.path.join(path, "ids.json"), "w", encoding="utf-8") as stream:
                json.dump([found(text, add_special_tokens=False)["input_ids"] for text in texts], stream)


def ids(folder: str, texts_file: str, to: str) -> None:
    """Writes the rows of texts, `single`, and what they are decoded to, `texts`; the row of the first two as a `pair`;
    and the id of the `mask`.
    """
    with open(texts_file, encoding="utf-8") as stream:
        texts = json.load(stream)
    found = transformers.AutoTokenizer.from_pretrained(folder)
    single = found(texts)["input_ids"]
    rows = {
        "single": single,
        "texts": [found.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=False) for row in single],
        "pair": found(*texts[:2])["input_ids"],
        "mask": found.mask_token_id,
    }
    with open(to, "w", encoding="utf-8") as stream:
        json.dump(rows, stream)


if __name__ == "__main__":
    {"make": make, "ids": ids}[sys.argv[1]](*sys.argv[2:])
