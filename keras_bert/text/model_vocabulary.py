"""Vocabularies of SentencePiece models that do all normalization themselves."""

import itertools
from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.core.errors import UserError
from keras_bert.core.files import join
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary
from keras_bert.text.tokenizer_files import GENERIC, TOKENIZER_CONFIG, TokenizerSettings


class ModelVocabulary(SentencePieceVocabulary):
    """The pieces of a model that takes texts as they are.

    Class attributes:
        class_names: the classes of its tokenizers in transformers.
    """

    tokenizer_settings = ()
    class_names: ClassVar[tuple[str, ...]]

    @classmethod
    def read_settings(
        cls, folder: str, config: Mapping[str, Any], lower_case: bool | None
    ) -> tuple[TokenizerSettings, list[str]]:
        named = config.get("tokenizer_class") or cls.class_names[0]
        if str(named).removesuffix("Fast") not in cls.class_names and named not in GENERIC:
            raise UserError(
                f"{join(folder, TOKENIZER_CONFIG)}: needs {' or '.join(cls.class_names)} for {cls.file_name}. "
                f"Received: {named}, which is not supported."
            )
        if lower_case or config.get("do_lower_case"):
            raise UserError(f"{folder}: needs text as it is for {cls.title}. Received: lower case. Leave it out.")
        return TokenizerSettings(lower_case=False), []

    def tokenizer_config(self, settings: TokenizerSettings, max_positions: int) -> dict[str, Any]:
        return {
            "tokenizer_class": self.class_names[0],
            "model_max_length": max_positions,
            **self._special_token_fields(),
        }

    @classmethod
    def describe(cls, settings: TokenizerSettings) -> str:
        return f"{cls.title}; texts are normalized as the model's file says."

    def spellings(self) -> list[bytes]:
        # Like sentinels, the rows that `padded` adds at the end, beyond `is_piece`, add nothing to a text.
        is_written = itertools.chain(self.is_piece, itertools.repeat(False))
        rows = zip(self.tokens, is_written)
        return [self._spelling(token).encode("utf-8") if written else b"" for token, written in rows]
