"""The vocabularies of XLM-RoBERTa and CamemBERT: a SentencePiece model whose pieces fairseq renumbered.

fairseq's dictionary begins with special tokens of its own, so its ids differ from the model's. Both name the file
sentencepiece.bpe.model; the files beside it show which dictionary applies.
"""

import hashlib
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, is_file, join, parent, read_file
from keras_bert.core.program import PROGRAM
from keras_bert.core.whole_files import write_json
from keras_bert.core.yaml_and_json import read_if_there, read_json
from keras_bert.text.model_vocabulary import ModelVocabulary
from keras_bert.text.sentencepiece_vocabulary import charsmap_in, read_pieces, unigram_model
from keras_bert.text.standalone_tokenizer import SPACES
from keras_bert.text.tokenizer_files import TOKENIZER, TOKENIZER_CONFIG, TokenizerSettings, unigrams
from keras_bert.text.vocabulary import RowPattern

CLS, PAD, SEP, UNK, MASK = "<s>", "<pad>", "</s>", "<unk>", "<mask>"
_MODELS_FIRST = (UNK, CLS, SEP)  # The pieces that every such model begins with.
_MODEL_CONFIG = "config.json"


class Dictionary(NamedTuple):
    """How fairseq numbers the pieces of a model.

    Attributes:
        tokenizer: the tokenizer's class in transformers.
        model_type: the `model_type` in config.json of the models that use it.
        first: the tokens before the pieces.
        left_out: how many of the model's first pieces have no id of their own. The others follow `first`, and then
            comes <mask>.
    """

    tokenizer: str
    model_type: str
    first: tuple[str, ...]
    left_out: int

    @property
    def shift(self) -> int:
        """The number to add to the model's ids."""
        return len(self.first) - self.left_out


XLM_ROBERTA = Dictionary("XLMRobertaTokenizer", "xlm-roberta", (CLS, PAD, SEP, UNK), 3)
CAMEMBERT = Dictionary("CamembertTokenizer", "camembert", ("<s>NOTUSED", PAD, "</s>NOTUSED", UNK, "<unk>NOTUSED"), 1)
_DICTIONARIES = (XLM_ROBERTA, CAMEMBERT)


class FairseqVocabulary(ModelVocabulary):
    """The pieces of XLM-RoBERTa (Conneau et al. 2020) or CamemBERT (Martin et al. 2020) in the order of their ids.

    Attributes:
        dictionary: how the model's pieces are numbered.
    """

    title = "a SentencePiece model like XLM-RoBERTa's"
    file_name = "sentencepiece.bpe.model"
    tokenizer = "keras_bert.text.fairseq_pieces:FairseqTokenizer"
    class_names = tuple(dictionary.tokenizer for dictionary in _DICTIONARIES)
    masks = rf"[{SPACES}]*(?:\[MASK\]|<mask>)"  # The masked piece includes the space before it.
    example_recipe = "roberta_mini"

    def __init__(self, model: bytes, source: StrPath = "vocabulary", dictionary: Dictionary = XLM_ROBERTA) -> None:
        """`source` names the origin of the model in messages.

        Raises:
            UserError: it is not a SentencePiece model, or does not begin with <unk> <s> </s>.
        """
        self.model, self.dictionary = model, dictionary
        pieces = read_pieces(model, source)
        begins = tuple(text for text, _ in pieces[: len(_MODELS_FIRST)])
        if begins != _MODELS_FIRST:
            raise UserError(
                f"{source}: needs a model that begins with {' '.join(_MODELS_FIRST)}. Received: {' '.join(begins)}. "
                f"Learn one with: {PROGRAM} vocab --kind {XLM_ROBERTA.model_type}"
            )
        own = pieces[dictionary.left_out :]
        self._set_tokens([*dictionary.first, *(text for text, _ in own), MASK])
        self.cls_id, self.pad_id, self.sep_id, self.unk_id, self.mask_id = (
            self.ids[name] for name in (CLS, PAD, SEP, UNK, MASK)
        )
        no_piece = 0
        self._set_marks(np.array([*(no_piece for _ in dictionary.first), *(kind for _, kind in own), no_piece]))
        of_others = b"" if dictionary is XLM_ROBERTA else dictionary.tokenizer.encode()
        self.fingerprint = hashlib.sha256(self._file_bytes() + of_others).hexdigest()

    @property
    def row_pattern(self) -> RowPattern:
        """The special tokens of rows: <s> first </s>, or <s> first </s></s> second </s>."""
        return RowPattern((self.cls_id,), (self.sep_id, self.sep_id), (self.sep_id,))

    @classmethod
    def is_file(cls, path: str) -> bool:
        if os.path.basename(path) == TOKENIZER and is_file(path):
            return _dictionary_in(read_json(path)) is not None
        return path.endswith(cls.file_name)

    @classmethod
    def read(cls, path: StrPath) -> "FairseqVocabulary":
        if os.path.basename(os.fspath(path)) == TOKENIZER:
            content = read_json(path)
            dictionary = _dictionary_in(content)
            if dictionary is None:
                raise UserError(f"{path}: needs XLM-RoBERTa's pieces or CamemBERT's. Give {cls.file_name}.")
            return cls(_model_in(content, dictionary, path), path, dictionary)
        return cls(read_file(path, f"Give {cls.file_name}."), path, _dictionary_of(parent(path)))

    def to_file(self, path: StrPath) -> None:
        """Writes the model's file and, unless it is XLM-RoBERTa's, the tokenizer's class into tokenizer_config.json."""
        if self.dictionary is not XLM_ROBERTA:
            config = join(parent(path), TOKENIZER_CONFIG)
            write_json(config, {**read_if_there(config), "tokenizer_class": self.dictionary.tokenizer})
        super().to_file(path)

    def tokenizer_config(self, settings: TokenizerSettings, max_positions: int) -> dict[str, Any]:
        return {**super().tokenizer_config(settings, max_positions), "tokenizer_class": self.dictionary.tokenizer}


def _dictionary_of(folder: str) -> Dictionary:
    """The dictionary named by a folder's tokenizer_config.json or else its config.json; by default XLM-RoBERTa's."""
    named = read_if_there(join(folder, TOKENIZER_CONFIG)).get("tokenizer_class") or ""
    model_type = read_if_there(join(folder, _MODEL_CONFIG)).get("model_type")
    for dictionary in _DICTIONARIES:
        if str(named).removesuffix("Fast") == dictionary.tokenizer:
            return dictionary
    return CAMEMBERT if model_type == CAMEMBERT.model_type else XLM_ROBERTA


def _dictionary_in(content: Mapping[str, Any]) -> Dictionary | None:
    """The dictionary of the pieces in a tokenizer.json; None if they belong to another tokenizer."""
    pieces = unigrams(content)
    if not pieces:
        return None
    for dictionary in _DICTIONARIES:
        if tuple(text for text, _ in pieces[: len(dictionary.first)]) == dictionary.first and pieces[-1][0] == MASK:
            return dictionary
    return None


def _model_in(content: Mapping[str, Any], dictionary: Dictionary, path: StrPath) -> bytes:
    """A SentencePiece model that splits texts like the one that a tokenizer.json was made from."""
    own = (unigrams(content) or [])[len(dictionary.first) : -1]
    left_out = [(text, 0.0) for text in _MODELS_FIRST[: dictionary.left_out]]
    return unigram_model([*left_out, *own], charsmap_in(content, path, FairseqVocabulary.file_name))
