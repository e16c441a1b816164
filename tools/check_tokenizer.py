"""Ids and offsets of the tokenizers against the plain-Python original, line by line over files.

python tools/check_tokenizer.py --vocab vocab.txt corpus.txt more.txt.gz
"""

import itertools
import os
import sys

import click

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests", "text"), os.path.join(ROOT, "tools")]

from benchmark_tokenizer import BATCH_SIZE, read_lines  # noqa: E402
from original_tokenization import encode  # noqa: E402

SHOWN = 5


@click.command()
@click.option("--vocab", required=True, type=click.Path(exists=True), help="A vocab.txt.")
@click.option("--cased", is_flag=True, help="Keep case and accents.")
@click.option("--standalone", is_flag=True, help="Check the tokenizer in plain Python, not the one in the graph.")
@click.option("--megabytes", default=20.0, show_default=True, help="How much text, in equal parts from the files.")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True))
def main(vocab, cased, standalone, megabytes, files):
    """Compares the lines of FILES (plain or .gz); exits with status 1 if any differs."""
    tokenize, tokens_of = (standalone_rows if standalone else graph_rows)(vocab, not cased)
    ids = {token: index for index, token in enumerate(tokens_of)}
    lines = iter(read_lines(files, megabytes))
    compared = differing = tokens = 0
    while batch := list(itertools.islice(lines, BATCH_SIZE)):
        for line, ours in zip(batch, tokenize(batch)):
            original = encode(line, ids, not cased)
            compared += 1
            tokens += len(original[0])
            if ours != original:
                differing += 1
                if differing <= SHOWN:
                    click.echo(f"{line!r}\n  tokenizer {ours}\n  original  {original}")
    click.echo(f"{compared:,} rows and {tokens:,} tokens compared, {differing:,} rows differ.")
    sys.exit(differing > 0)


def graph_rows(vocab, lower_case):
    """`(function from lines to (ids, starts, ends) of each, the vocabulary's pieces)`."""
    import tensorflow as tf

    from keras_bert.text.wordpiece import WordPieceTokenizer

    tokenizer = WordPieceTokenizer(vocab, lower_case=lower_case)
    tokenize = tf.function(tokenizer.tokenize_with_offsets, input_signature=[tf.TensorSpec([None], tf.string)])
    return (
        lambda lines: zip(*(column.to_list() for column in tokenize(tf.constant(lines)))),
        tokenizer.vocabulary.tokens,
    )


def standalone_rows(vocab, lower_case):
    """The same by `StandaloneTokenizer`."""
    from keras_bert.text.standalone_tokenizer import StandaloneTokenizer, read_tokens

    tokenizer = StandaloneTokenizer(read_tokens(vocab), lower_case)
    return lambda lines: map(tokenizer.tokenize_with_offsets, lines), tokenizer.tokens


if __name__ == "__main__":
    main()
