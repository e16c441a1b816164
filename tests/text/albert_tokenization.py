"""ALBERT's tokenization in plain Python, by its published algorithm (tokenization.py of google-research/albert).

`quotes` is the rule that transformers' AlbertTokenizer adds. Unlike there, text that reads like a special token is
unknown: there it is that token if none of its characters is in the vocabulary.
"""

import unicodedata

MARK = "▁"


def preprocess(text, lower_case, quotes):
    text = " ".join(text.strip().split())
    if quotes:
        text = text.replace("``", '"').replace("''", '"')
    text = unicodedata.normalize("NFKD", text)
    text = "".join(character for character in text if not unicodedata.combining(character))
    return text.lower() if lower_case else text


def albert_pieces(processor, text):
    """The pieces of a preprocessed text, by a `SentencePieceProcessor`."""
    pieces = []
    for piece in processor.encode_as_pieces(text):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            number = processor.encode_as_pieces(piece[:-1].replace(MARK, ""))
            if piece[0] != MARK and number[0][0] == MARK:
                number = number[1:] if len(number[0]) == 1 else [number[0][1:], *number[1:]]
            pieces += [*number, ","]
        else:
            pieces.append(piece)
    return pieces


def albert_ids(processor, text, lower_case=True, quotes=False):
    """The ids of a text, given as str or as bytes."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "ignore")
    ids = [processor.piece_to_id(piece) for piece in albert_pieces(processor, preprocess(text, lower_case, quotes))]
    return [processor.unk_id() if processor.is_control(index) else index for index in ids]
