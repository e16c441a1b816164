"""`run.py embed`."""

import json
import logging

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import (
    batch_tokens_option,
    casing_option,
    column_option,
    file_to_write,
    format_option,
    load_tensorflow,
    max_length_option,
    model_option,
    require_source,
)
from keras_bert.config.inference import (
    FLOAT32,
    POOLINGS,
    PRECISIONS,
    SPARSE,
    VectorConfig,
    check_embedding,
    check_quantization,
    vector_width,
)
from keras_bert.core.errors import UserError
from keras_bert.core.files import is_remote
from keras_bert.core.imports import require
from keras_bert.tasks.answer_files import require_unread

_log = logging.getLogger(__name__)


@click.command()
@model_option
@click.option(
    "--input",
    "source",
    required=True,
    metavar="FILE|-",
    help="Texts: a table, or plain text, one per line; may be .gz, .bz2, .xz or .zst. - reads stdin.",
)
@column_option
@format_option
@click.option("--output", required=True, metavar="FILE.npz", callback=file_to_write, help="Array file to write.")
@click.option(
    "--index",
    metavar="FILE.usearch",
    callback=file_to_write,
    help="Also write a nearest-neighbour index for the library USearch, by cosine or, for binary vectors, by the "
    "number of bits that differ.",
)
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default=FLOAT32,
    help="Type of the values. int8: 256 levels between the lowest and the highest value of each dimension, kept as "
    "ranges. binary: whether a value is above 0, 8 dimensions a byte.",
)
@click.option(
    "--ranges",
    metavar="FILE.npz",
    help="With --precision int8: use the ranges of this file, so that queries can be compared with its documents.",
)
@click.option(
    "--size",
    type=int,
    help="Number of dimensions to keep, from the first on, in vectors scaled to length 1; best for models fine-tuned "
    "with vectors.matryoshka. For sparse vectors: number of values to keep, the largest ones.",
)
@click.option(
    "--pooling",
    type=click.Choice(POOLINGS),
    help="How to turn hidden states into vectors; see above. Default: as the model folder says for "
    "sentence-transformers, with vectors of length 1 if it says so, or else mean.",
)
@max_length_option
@batch_tokens_option
@casing_option
def embed(
    model: str,
    source: str,
    text: str | None,
    format: str | None,
    output: str,
    index: str | None,
    precision: str,
    ranges: str | None,
    size: int | None,
    pooling: str | None,
    max_length: int | None,
    batch_tokens: int,
    lower_case: bool | None,
) -> None:
    """Write the embeddings of texts to a file for numpy.load.

    \b
    --pooling mean    mean of the last layer over all tokens, [CLS] and [SEP] too
    --pooling cls     last layer at [CLS]
    --pooling max     maximum of each dimension of the last layer over all tokens
    --pooling last4   last four layers concatenated, then the mean over all tokens
    --pooling tokens  last layer at every piece: embeddings [pieces, hidden], with
                      the arrays pieces (ids), starts and ends (offsets of its
                      characters) and rows (each text's first piece, and the end)
    --pooling sparse  the masked LM's weight for every piece of the vocabulary
                      (SPLADE), mostly 0, for scipy.sparse.load_npz

    \b
    Examples:
      python run.py embed --model runs/demo --input texts.txt --output vectors.npz
      python run.py embed --model runs/demo --input reviews.parquet --text review --output vectors.npz
      python run.py embed --model runs/demo --input texts.txt --output small.npz --precision int8
      python run.py embed --model runs/demo --input queries.txt --output q.npz --precision int8 --ranges small.npz
    """
    require_source(source)
    folder = open_model_folder(model, lower_case)
    made = folder.vectors(pooling)
    check_embedding(folder.config, made.pooling, folder.vector_length if max_length is None else max_length)
    if index:
        if pooling in ("tokens", SPARSE):
            raise UserError(
                f"--index: needs one dense vector for each text. Received: --pooling {pooling}. Leave one out."
            )
        require("usearch", "--index")
    if size is not None and pooling == "tokens":
        raise UserError("--size: needs a vector for each text. Received: --pooling tokens. Leave one out.")
    width = vector_width(folder.config, made.pooling)
    check_quantization(width, precision, size, ranges is not None, made.pooling == SPARSE)
    require_unread([output, index], [source, folder.path, ranges])
    load_tensorflow()
    from keras_bert.data.tables.tables import is_table
    from keras_bert.inference.loading import load_folder
    from keras_bert.tasks.embedding import embed_file
    from keras_bert.tasks.vector_files import read_ranges

    if text is not None and not is_table(source, format):
        raise UserError(
            f"--text: needs a table. Received: {source}, plain text, each line of which is a text. Give its --format "
            "if it is a table, such as tsv, or leave out --text."
        )
    other = read_ranges(ranges) if ranges else None
    if other is not None and other.shape[1] != (size or width):
        raise UserError(
            f"{ranges}: needs ranges of {size or width} dimensions. Received: {other.shape[1]}. "
            "Give the file of the documents, with their model, --pooling and --size."
        )
    if pooling is None and made != VectorConfig():
        length = ", scaled to length 1" if made.normalize else ""
        _log.info(f"Vectors by the pooling {made.pooling}{length}, as the files of {folder.path} say.")
    embedder = load_folder(folder).embedder(pooling, max_length, batch_tokens)
    done = embed_file(embedder, source, output, index, text or "text", format, precision, size, other)
    if done.cut:
        click.echo(
            f"{done.cut:,} of {done.texts:,} texts have more than {embedder.max_length} tokens and were truncated, "
            f"the first: {done.first_cut}."
        )
    if index:
        _log.info(f"Written: {index}. Next: usearch.index.Index.restore({_literal(index)}).search(vector, 10).keys")
    shape = ", ".join(map(str, done.shape))
    opened = f'tf.io.gfile.GFile({_literal(output)}, "rb")' if is_remote(output) else _literal(output)
    loaded = f"scipy.sparse.load_npz({opened})" if pooling == SPARSE else f'numpy.load({opened})["embeddings"]'
    _log.info(f"Written: {output}, {done.texts:,} texts. Next: {loaded}, {done.dtype} [{shape}]")


def _literal(text: str) -> str:
    """A text as a Python literal in double quotes."""
    return json.dumps(text, ensure_ascii=False)
