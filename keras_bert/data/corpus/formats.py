"""The format of a file of a corpus, told by its first bytes, and by its name where these do not tell."""

from keras_bert.core.errors import UserError
from keras_bert.data.corpus.annotated_text import is_conllu
from keras_bert.data.corpus.text_lines import plain_ending, what_is_no_text
from keras_bert.data.tables.tables import table_format

PLAIN = "plain text"
WIKI_EXTRACTOR = "WikiExtractor's format"
MEDIAWIKI = "a MediaWiki dump"
WARC = "a web archive"
CONLLU = "CoNLL-U"
TABLE = "a table"

_MAGIC = {b"<doc ": WIKI_EXTRACTOR, b"<mediawiki": MEDIAWIKI, b"<?xml": MEDIAWIKI, b"WARC/": WARC}


def format_of(path: str, start: bytes) -> str:
    """The format of a file.

    Args:
        path: its name.
        start: its first kilobytes, decompressed, without white space in front.

    Raises:
        UserError: it is of a format that is not read, such as HTML or PDF.
    """
    if found := what_is_no_text(plain_ending(path), start):
        raise UserError(f"{path}: needs text. Received: {found}. Extract its text first, or leave it out.")
    if magic := next((name for mark, name in _MAGIC.items() if start.startswith(mark)), None):
        return magic
    if table_format(path, start):
        return TABLE
    return CONLLU if is_conllu(start.decode("utf-8", "replace").split("\n")) else PLAIN
