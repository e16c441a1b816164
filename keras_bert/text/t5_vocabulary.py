"""T5's vocabulary: a SentencePiece model's pieces, then the sentinels that stand for spans of a text."""

import hashlib
import os
import re
from typing import Any

import numpy as np

from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, join, parent, read_file
from keras_bert.core.whole_files import write_json
from keras_bert.core.yaml_and_json import read_if_there, read_json
from keras_bert.text.model_vocabulary import ModelVocabulary
from keras_bert.text.sentencepiece_vocabulary import charsmap_in, read_pieces, unigram_model
from keras_bert.text.tokenizer_files import TOKENIZER, TOKENIZER_CONFIG, TokenizerSettings
from keras_bert.text.vocabulary import RowPattern

PAD, END, UNK = FIRST_PIECES = ("<pad>", "</s>", "<unk>")  # In the order of their ids, from 0.
SENTINEL = "extra_id_"
SENTINELS, _SENTINELS_FIELD = 100, "extra_ids"
_NAMED = re.compile(rf"<{SENTINEL}\d+>")


class T5Vocabulary(ModelVocabulary):
    """The pieces of a T5 (Raffel et al. 2020, section 3.1.4), and its sentinels. Its file is named like ALBERT's.

    There is no [CLS]: `cls_id` is the id of the padding, with which T5's decoder begins. `sep_id` is the end of a text,
    and `mask_id` the first sentinel.

    Attributes:
        sentinel_ids: the ids of "<extra_id_0>" (the last token), "<extra_id_1>" and so on.
    """

    title = "a SentencePiece model like T5's"
    tokenizer = "keras_bert.text.t5_pieces:T5Tokenizer"
    class_names = ("T5Tokenizer",)
    model_title, first_pieces, first_bytes = "T5", FIRST_PIECES, rb"<pad>.{1,24}</s>.{1,24}<unk>"
    example_recipe = "t5_mini"

    def __init__(self, model: bytes, source: StrPath = "vocabulary", sentinels: int = SENTINELS) -> None:
        """`source` names the origin of the model in messages; the `sentinels` that it lacks follow its pieces.

        Raises:
            UserError: it is not a SentencePiece model, or does not begin with <pad> </s> <unk>.
        """
        self.model = model
        pieces = read_pieces(model, source)
        begins = tuple(text for text, _ in pieces[: len(FIRST_PIECES)])
        if begins != FIRST_PIECES:
            raise UserError(
                f"{source}: needs a model that begins with {' '.join(FIRST_PIECES)}. Received: {' '.join(begins)}. "
                "Give the spiece.model of a T5."
            )
        names = [f"<{SENTINEL}{number}>" for number in range(sentinels)]
        own = {text for text, _ in pieces}
        self._set_tokens([*(text for text, _ in pieces), *(name for name in reversed(names) if name not in own)])
        self.pad_id, self.sep_id, self.unk_id = (self.ids[name] for name in FIRST_PIECES)
        self.cls_id = self.pad_id
        self.sentinel_ids = [self.ids[name] for name in names]
        self.mask_id = self.sentinel_ids[0] if names else self.unk_id
        no_piece = 0
        types = [no_piece if _NAMED.fullmatch(text) else kind for text, kind in pieces]
        self._set_marks(np.array([*types, *(no_piece for _ in self.tokens[len(pieces) :])]))
        others = b"" if sentinels == SENTINELS else str(sentinels).encode()
        self.fingerprint = hashlib.sha256(self._file_bytes() + others).hexdigest()

    @property
    def row_pattern(self) -> RowPattern:
        """The special tokens of rows: first </s>, or first </s> second </s>."""
        return RowPattern((), (self.sep_id,), (self.sep_id,))

    @classmethod
    def read(cls, path: StrPath) -> "T5Vocabulary":
        config = join(parent(path), TOKENIZER_CONFIG)
        sentinels = read_if_there(config).get(_SENTINELS_FIELD)
        if sentinels is not None and (type(sentinels) is not int or sentinels < 0):
            raise UserError(
                f"{config}: needs a whole number of 0 or more as {_SENTINELS_FIELD}. Received: {sentinels!r}."
            )
        if os.path.basename(os.fspath(path)) == TOKENIZER:
            content = read_json(path)
            pieces = cls._own_pieces(content, path)
            own = [piece for piece in pieces if not _NAMED.fullmatch(piece[0])]
            model = unigram_model(
                own, charsmap_in(content, path, cls.file_name), len(FIRST_PIECES), FIRST_PIECES.index(UNK)
            )
            return cls(model, path, len(pieces) - len(own) if sentinels is None else sentinels)
        return cls(read_file(path, f"Give {cls.file_name}."), path, SENTINELS if sentinels is None else sentinels)

    def to_file(self, path: StrPath) -> None:
        """Writes the model's file and, unless it is T5's 100, the number of sentinels into tokenizer_config.json."""
        if len(self.sentinel_ids) != SENTINELS:
            config = join(parent(path), TOKENIZER_CONFIG)
            write_json(config, {**read_if_there(config), _SENTINELS_FIELD: len(self.sentinel_ids)})
        super().to_file(path)

    def tokenizer_config(self, settings: TokenizerSettings, max_positions: int) -> dict[str, Any]:
        return {**super().tokenizer_config(settings, max_positions), _SENTINELS_FIELD: len(self.sentinel_ids)}

    def _special_token_fields(self) -> dict[str, str]:
        return {"eos_token": END, "unk_token": UNK, "pad_token": PAD}
