"""XLNet's vocabulary: a SentencePiece model with special tokens of its own, which come at the end of rows."""

import os
from collections.abc import Mapping
from typing import Any

from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, is_file, open_file
from keras_bert.core.program import PROGRAM
from keras_bert.core.yaml_and_json import read_json
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary, charsmap_in, unigram_model
from keras_bert.text.tokenizer_files import TOKENIZER, unigrams
from keras_bert.text.vocabulary import RowPattern

# In the order of their ids, from 0.
SPECIAL_TOKENS = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")
_CLS_SEGMENT = 2
_IN_FIRST_BYTES, _FIRST_BYTES = b"<cls>", 256
# The normalizers that run before the model's own, by their types in tokenizer.json.
_NORMALIZERS = ("NFKD", "StripAccents", "Lowercase")


class XlnetVocabulary(SentencePieceVocabulary):
    """The pieces of an XLNet (Yang et al. 2019). Its file is named like ALBERT's; <cls> tells them apart."""

    title = "a SentencePiece model like XLNet's"
    model_title = "XLNet"
    class_name = "XLNetTokenizer"
    special_tokens = ("<pad>", "<unk>", "<cls>", "<sep>", "<mask>")
    remedy = f"Give the spiece.model of an XLNet, or learn one with: {PROGRAM} vocab --kind xlnet"
    example_recipe = "xlnet_mini"
    lower_cases = False

    @property
    def row_pattern(self) -> RowPattern:
        """The special tokens of rows: first <sep> <cls>, or first <sep> second <sep> <cls>."""
        return RowPattern((), (self.sep_id,), (self.sep_id, self.cls_id), _CLS_SEGMENT)

    @classmethod
    def is_file(cls, path: str) -> bool:
        if os.path.basename(path) == TOKENIZER and is_file(path):
            return _has_first(read_json(path))
        if not super().is_file(path) or not is_file(path):
            return False
        with open_file(path) as stream:
            return _IN_FIRST_BYTES in stream.read(_FIRST_BYTES)

    @classmethod
    def read(cls, path: StrPath) -> "XlnetVocabulary":
        if os.path.basename(os.fspath(path)) != TOKENIZER:
            return super().read(path)
        content = read_json(path)
        pieces = unigrams(content)
        if not pieces or not _has_first(content):
            raise UserError(f"{path}: needs XLNet's pieces. Give {cls.file_name}.")
        charsmap = charsmap_in(content, path, cls.file_name, _NORMALIZERS)
        return cls(unigram_model(pieces, charsmap, len(SPECIAL_TOKENS)), path)

    def _special_token_fields(self) -> dict[str, str]:
        return {**super()._special_token_fields(), "bos_token": SPECIAL_TOKENS[1], "eos_token": SPECIAL_TOKENS[2]}


def _has_first(content: Mapping[str, Any]) -> bool:
    """Whether a tokenizer.json has a unigram model that begins with XLNet's special tokens."""
    return tuple(text for text, _ in (unigrams(content) or [])[: len(SPECIAL_TOKENS)]) == SPECIAL_TOKENS
