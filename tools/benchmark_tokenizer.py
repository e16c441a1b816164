"""Tokens per CPU second: this tokenizer, without and with offsets, and Hugging Face's `tokenizers`.

    python tools/benchmark_tokenizer.py --vocab vocab.txt corpus.txt more.txt.gz
    python tools/benchmark_tokenizer.py --vocab vocab.json corpus.txt

The vocabulary is of WordPieces, or a vocab.json of byte-level BPE with its merges.txt. Everything runs on one thread,
in turns, and the median of the turns is printed, so that other work on the machine weighs on all three alike.
"""

import gzip
import itertools
import os
import statistics
import sys
import time

import click

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

BATCH_SIZE = 512


def read_lines(files, megabytes):
    """The first lines of each file with text in them, as bytes; together at most `megabytes`."""
    lines = []
    for file in files:
        budget = megabytes * 1e6 / len(files)
        with (gzip.open if file.endswith(".gz") else open)(file, "rb") as stream:
            for line in stream:
                budget -= len(line)
                if budget < 0:
                    break
                if line.strip():
                    lines.append(line.rstrip(b"\n"))
    return lines


def tokenizers_to_compare(vocab, lower_case):
    """`{name: function from a batch of bytes to its number of tokens}`."""
    import tensorflow as tf
    from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

    from keras_bert.text.byte_vocabulary import ByteVocabulary, merges_path
    from keras_bert.text.tokenizer_files import TokenizerSettings
    from keras_bert.text.tokenizers import make_tokenizer
    from keras_bert.text.vocabulary import Vocabulary

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    vocabulary = Vocabulary.from_file(vocab)
    ours = make_tokenizer(vocabulary, TokenizerSettings(lower_case, prefix_space=False))
    signature = [tf.TensorSpec([None], tf.string)]
    without_offsets = tf.function(lambda texts: tf.size(ours.tokenize(texts).values), input_signature=signature)

    @tf.function(input_signature=signature)
    def with_offsets(texts):
        ids, starts, ends = ours.tokenize_with_offsets(texts)
        return ids.values, starts.values, ends.values

    if isinstance(vocabulary, ByteVocabulary):
        theirs = ByteLevelBPETokenizer(vocab, merges_path(vocab))
    else:
        theirs = BertWordPieceTokenizer(vocab, lowercase=lower_case)
    # The wrapper does not pass on the fast call, which leaves out the offsets.
    encode_batch_fast = theirs._tokenizer.encode_batch_fast

    def hugging_face(batch):
        texts = [line.decode("utf-8", "ignore") for line in batch]
        return sum(len(row) for row in encode_batch_fast(texts, add_special_tokens=False))

    return {
        "ours": lambda batch: int(without_offsets(tf.constant(batch))),
        "ours with offsets": lambda batch: int(tf.size(with_offsets(tf.constant(batch))[0])),
        "Hugging Face": hugging_face,
    }


@click.command()
@click.option("--vocab", required=True, type=click.Path(exists=True), help="A vocab.txt or vocab.json.")
@click.option("--cased", is_flag=True, help="Keep case and accents.")
@click.option("--megabytes", default=2.0, show_default=True, help="How much text, in equal parts from the files.")
@click.option("--turns", default=7, show_default=True, help="How often each tokenizer runs.")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True))
def main(vocab, cased, megabytes, turns, files):
    """Prints million tokens per CPU second on the text of FILES (plain or .gz)."""
    lines = read_lines(files, megabytes)
    batches = [lines[start : start + BATCH_SIZE] for start in range(0, len(lines), BATCH_SIZE)]
    contenders = tokenizers_to_compare(vocab, not cased)
    for run in contenders.values():
        run(batches[0])
    rates = {name: [] for name in contenders}
    for _, (name, run) in itertools.product(range(turns), contenders.items()):
        start = time.process_time()
        tokens = sum(run(batch) for batch in batches)
        rates[name].append(tokens / (time.process_time() - start) / 1e6)
    reference = statistics.median(rates["Hugging Face"])
    click.echo(f"{len(lines):,} lines, {sum(map(len, lines)):,} bytes, {tokens:,} tokens")
    for name, values in rates.items():
        median = statistics.median(values)
        spread = f"{min(values):.2f} to {max(values):.2f}"
        click.echo(f"{name:18} {median:5.2f} million tokens per CPU second ({spread}), {median / reference:.2f}x")


if __name__ == "__main__":
    main()
