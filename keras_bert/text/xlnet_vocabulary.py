"""XLNet's vocabulary: a SentencePiece model with special tokens of its own, which come at the end of rows."""

from keras_bert.core.program import PROGRAM
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary
from keras_bert.text.vocabulary import RowPattern

# In the order of their ids, from 0.
SPECIAL_TOKENS = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")
_CLS_SEGMENT = 2


class XlnetVocabulary(SentencePieceVocabulary):
    """The pieces of an XLNet (Yang et al. 2019). Its file is named like ALBERT's; <cls> tells them apart."""

    title = "a SentencePiece model like XLNet's"
    model_title = "XLNet"
    class_name = "XLNetTokenizer"
    special_tokens = ("<pad>", "<unk>", "<cls>", "<sep>", "<mask>")
    first_pieces, first_bytes = SPECIAL_TOKENS, b"<cls>"
    remedy = f"Give the spiece.model of an XLNet, or learn one with: {PROGRAM} vocab --kind xlnet"
    example_recipe = "xlnet_mini"
    lower_cases = False

    @property
    def row_pattern(self) -> RowPattern:
        """The special tokens of rows: first <sep> <cls>, or first <sep> second <sep> <cls>."""
        return RowPattern((), (self.sep_id,), (self.sep_id, self.cls_id), _CLS_SEGMENT)

    def _special_token_fields(self) -> dict[str, str]:
        return {**super()._special_token_fields(), "bos_token": SPECIAL_TOKENS[1], "eos_token": SPECIAL_TOKENS[2]}
