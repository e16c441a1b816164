"""Ids and offsets of the tokenizers against the plain-Python original, line by line over files.

    python tools/check_tokenizer.py --vocab vocab.txt corpus.txt more.txt.gz
    python tools/check_tokenizer.py --vocab vocab.json corpus.txt

The vocabulary is of WordPieces, or a vocab.json of byte-level BPE with its merges.txt.
"""

import itertools
import os
import sys

import click

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests", "text"), os.path.join(ROOT, "tools")]

from benchmark_tokenizer import BATCH_SIZE, read_lines  # noqa: E402
from gpt2_encoding import encode as encode_as_gpt2  # noqa: E402
from original_tokenization import encode as encode_as_bert  # noqa: E402

SHOWN = 5


@click.command()
@click.option("--vocab", required=True, type=click.Path(exists=True), help="A vocab.txt or vocab.json.")
@click.option("--cased", is_flag=True, help="Keep case and accents.")
@click.option("--standalone", is_flag=True, help="Check the tokenizer in plain Python, not the one in the graph.")
@click.option("--megabytes", default=20.0, show_default=True, help="How much text, in equal parts from the files.")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True))
def main(vocab, cased, standalone, megabytes, files):
    """Compares the lines of FILES (plain or .gz); exits with status 1 if any differs."""
    from keras_bert.text.vocabulary import Vocabulary

    vocabulary = Vocabulary.from_file(vocab)
    tokenize = (standalone_rows if standalone else graph_rows)(vocabulary, not cased)
    original_of = original_encoder(vocabulary, not cased)
    lines = iter(read_lines(files, megabytes))
    compared = differing = tokens = 0
    while batch := list(itertools.islice(lines, BATCH_SIZE)):
        for line, ours in zip(batch, tokenize(batch)):
            original = original_of(line)
            compared += 1
            tokens += len(original[0])
            if ours != original:
                differing += 1
                if differing <= SHOWN:
                    click.echo(f"{line!r}\n  tokenizer {ours}\n  original  {original}")
    click.echo(f"{compared:,} rows and {tokens:,} tokens compared, {differing:,} rows differ.")
    sys.exit(differing > 0)


def graph_rows(vocabulary, lower_case):
    """The function from lines to `(ids, starts, ends)` of each."""
    import tensorflow as tf

    from keras_bert.text.tokenizer_files import TokenizerSettings
    from keras_bert.text.tokenizers import make_tokenizer

    tokenizer = make_tokenizer(vocabulary, TokenizerSettings(lower_case, prefix_space=False))
    tokenize = tf.function(tokenizer.tokenize_with_offsets, input_signature=[tf.TensorSpec([None], tf.string)])
    return lambda lines: zip(*(column.to_list() for column in tokenize(tf.constant(lines))))


def standalone_rows(vocabulary, lower_case):
    """The same in plain Python."""
    from keras_bert.text.byte_vocabulary import ByteVocabulary
    from keras_bert.text.standalone_byte_tokenizer import StandaloneByteTokenizer
    from keras_bert.text.standalone_tokenizer import StandaloneTokenizer

    if isinstance(vocabulary, ByteVocabulary):
        tokenizer = StandaloneByteTokenizer(vocabulary.tokens, vocabulary.merges)
    else:
        tokenizer = StandaloneTokenizer(vocabulary.tokens, lower_case)
    return lambda lines: map(tokenizer.tokenize_with_offsets, lines)


def original_encoder(vocabulary, lower_case):
    """The function from a line to `(ids, starts, ends)` as the published code computes them."""
    from keras_bert.text.byte_vocabulary import ByteVocabulary, piece_bytes

    if not isinstance(vocabulary, ByteVocabulary):
        return lambda line: encode_as_bert(line, vocabulary.ids, lower_case)
    ids = {content: index for index, content in enumerate(vocabulary.bytes_of) if content}
    merges = {(piece_bytes(one), piece_bytes(two)): rank for rank, (one, two) in enumerate(vocabulary.merges)}

    def original(line):
        columns = zip(*encode_as_gpt2(line.decode("utf-8", "ignore"), ids, merges))
        return tuple(map(list, columns)) or ([], [], [])

    return original


if __name__ == "__main__":
    main()
