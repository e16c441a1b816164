"""`run.py retrieve`."""

import itertools
import logging
from typing import Any

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import (
    batch_tokens_option,
    casing_option,
    file_to_write,
    load_tensorflow,
    max_length_option,
    model_option,
    setting_option,
)
from keras_bert.config.inference import (
    SPARSE,
    TEXT_POOLINGS,
    RetrievalConfig,
    check_embedding,
    check_quantization,
    vector_width,
)
from keras_bert.config.recipes import given
from keras_bert.core import whole_files
from keras_bert.core.errors import UserError
from keras_bert.data.tables.retrieval_files import judgements_file, read_retrieval_set, require_run_ids, write_run
from keras_bert.tasks.answer_files import require_unread

_log = logging.getLogger(__name__)


@click.command()
@model_option
@click.option(
    "--data",
    "folder",
    required=True,
    metavar="FOLDER",
    help="corpus.jsonl (_id, title, text), queries.jsonl (_id, text) and qrels/SPLIT.tsv (query-id, corpus-id, score), "
    "as in BEIR.",
)
@click.option("--split", default="test", help="Split to score, as in qrels/SPLIT.tsv.")
@click.option(
    "--pooling",
    type=click.Choice(TEXT_POOLINGS),
    help="How to turn hidden states into vectors; see `embed`, also for the default.",
)
@setting_option(RetrievalConfig, "precision", has_default=True)
@setting_option(RetrievalConfig, "size")
@setting_option(RetrievalConfig, "query_prefix", metavar="TEXT")
@setting_option(RetrievalConfig, "passage_prefix", metavar="TEXT")
@setting_option(RetrievalConfig, "top_k", has_default=True)
@setting_option(RetrievalConfig, "skip_same_id")
@click.option(
    "--rerank", metavar="MODEL", help="Also rerank the results with this model from `finetune --task rerank`."
)
@max_length_option
@batch_tokens_option
@click.option("--output", metavar="FILE", callback=file_to_write, help="Write the scores as JSON.")
@click.option("--run", metavar="FILE", callback=file_to_write, help="Write the passages found, in TREC's run format.")
@casing_option
def retrieve(
    model: str,
    folder: str,
    split: str,
    pooling: str | None,
    rerank: str | None,
    max_length: int | None,
    batch_tokens: int,
    output: str | None,
    run: str | None,
    lower_case: bool | None,
    **settings: Any,
) -> None:
    """Search passages for queries by their vectors, and score the results.

    The search is exact. The scores are those of BEIR and trec_eval, in per cent: nDCG@10, MRR@10, MAP@100 and recall.
    Those that look deeper than --top-k are left out.

    \b
    Examples:
      python run.py retrieve --model runs/pairs-contrastive --data scifact
      python run.py retrieve --model runs/pairs-contrastive --data scifact --precision binary --run found.trec
      python run.py retrieve --model runs/pairs-contrastive --data scifact --top-k 20 --rerank runs/rerank
    """
    judgements_file(folder, split)  # Before a model is fetched from the hub.
    opened = open_model_folder(model, lower_case)
    made = opened.vectors(pooling)
    check_embedding(opened.config, made.pooling, opened.vector_length if max_length is None else max_length)
    config = RetrievalConfig(**given(settings))
    width = vector_width(opened.config, made.pooling)
    check_quantization(width, config.precision, config.size, False, made.pooling == SPARSE)
    reranking = open_model_folder(rerank) if rerank else None
    require_unread([output, run], [folder, opened.path, reranking.path if reranking else None])
    asked = read_retrieval_set(folder, split)
    if run:
        # Before the passages are embedded, which takes long.
        require_run_ids(run, itertools.chain(asked.queries, asked.passages))
    load_tensorflow()
    from keras_bert.inference.loading import load_folder
    from keras_bert.inference.retrieval import evaluate_retrieval
    from keras_bert.tasks.finetuning.results import table_lines

    rank = None
    if reranking:
        rank = load_folder(reranking).rank
        try:
            rank("A query.", ["A passage."])  # Before the passages are embedded, which takes long.
        except ValueError:
            raise UserError(
                f"--rerank: needs a model that scores pairs of texts. Received: {rerank}, of single texts. "
                "Give one of finetune --task rerank."
            ) from None
    found = evaluate_retrieval(load_folder(opened).embedder(pooling, max_length, batch_tokens), asked, config, rank)
    results = {"vectors": found, **({"reranker": found.reranked} if found.reranked else {})}
    rows = [["split", "ranked by", *found.scores]]
    rows += [[split, by, *(f"{100 * score:.2f}" for score in result.scores.values())] for by, result in results.items()]
    click.echo(f"{len(found.ranking):,} queries, {len(asked.passages):,} passages.")
    for line in table_lines(rows):
        click.echo(line)
    if run:
        write_run(run, (found.reranked or found).ranking)
        _log.info(f"Written: {run}.")
    if output:
        whole_files.write_json(output, {split: {by: result.scores for by, result in results.items()}})
        _log.info(f"Written: {output}.")
