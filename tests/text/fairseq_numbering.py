"""The published tokenizers of XLM-RoBERTa and CamemBERT in plain Python, around the sentencepiece package.

Source: transformers 4, tokenization_xlm_roberta.py and tokenization_camembert.py, `_convert_token_to_id`.
"""

import sentencepiece

# For each, the ids of the dictionary's own tokens, and what is added to the model's ids.
DICTIONARIES = {
    "XLMRobertaTokenizer": ({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}, 1),
    "CamembertTokenizer": ({"<s>NOTUSED": 0, "<pad>": 1, "</s>NOTUSED": 2, "<unk>": 3, "<unk>NOTUSED": 4}, 4),
}
UNKNOWN = 0
SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


class PublishedTokenizer:
    def __init__(self, model, name):
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.own, self.offset = DICTIONARIES[name]
        self.mask_id = self.processor.get_piece_size() + self.offset

    def id_of(self, piece):
        if piece in self.own:
            return self.own[piece]
        index = self.processor.piece_to_id(piece)
        return self.own["<unk>"] if index == UNKNOWN else index + self.offset

    def encode(self, text):
        """`(ids, starts, ends)` of a text; offsets leave out the white space that a piece begins with."""
        rows, content = [], text.encode("utf-8")
        for piece in self.processor.encode(text, out_type="proto").pieces:
            start, end = (len(content[:place].decode("utf-8")) for place in (piece.begin, piece.end))
            surface = text[start:end]
            start += len(surface) - len(surface.lstrip(SPACES))
            # Looked up by text, as published; a surface that spells a special token is unknown text here.
            rows.append((self.own["<unk>"] if piece.id == UNKNOWN else self.id_of(piece.piece), start, end))
        return [list(column) for column in zip(*rows)] or [[], [], []]
