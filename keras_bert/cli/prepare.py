"""`run.py prepare`."""

import logging
import shlex
from typing import Any

import click

from keras_bert.checkpoints.model_folder import given_prefix_space, given_vocabulary
from keras_bert.cli.options import (
    beam_runner,
    corpus_config,
    corpus_options,
    folder_to_write,
    runner_options,
    setting_option,
    text_casing_option,
    text_option,
    validation_share_option,
)
from keras_bert.config.pretraining import DataConfig
from keras_bert.core.errors import UserError
from keras_bert.core.files import join
from keras_bert.core.program import PROGRAM
from keras_bert.core.settings import from_mapping

_log = logging.getLogger(__name__)


@click.command()
@text_option
@corpus_options
@click.option(
    "--vocab",
    required=True,
    metavar="FILE",
    help="Vocabulary file, or hf:NAME for that of a model on the Hugging Face hub.",
)
@click.option(
    "--output",
    required=True,
    metavar="DIR",
    callback=folder_to_write,
    help="New folder for the shards; pass it to `pretrain --data`.",
)
@text_casing_option
@click.option("--workers", type=click.IntRange(min=0), default=0, help="Tokenizer processes; 0 starts one per core.")
@validation_share_option
@setting_option(DataConfig, "shard_megabytes", has_default=True)
@click.option("--whole-words", type=click.Choice(["jieba"]), help="Mark Chinese words, for whole-word masking.")
@setting_option(DataConfig, "phrases", metavar="FILE")
@setting_option(DataConfig, "phrase_tags", metavar="PROPN,NOUN")
@setting_option(DataConfig, "collocations", has_default=True)
@runner_options
def prepare(
    inputs: tuple[str, ...],
    vocab: str,
    output: str,
    lower_case: bool | None,
    workers: int,
    validation_share: float,
    shard_megabytes: float,
    whole_words: str | None,
    phrases: str | None,
    phrase_tags: str | None,
    collocations: int,
    runner: str | None,
    beam_options: tuple[str, ...],
    **reading: Any,
) -> None:
    """Tokenize text once, into shards that any number of runs can train on.

    The same command resumes after an interruption. With --runner, the shards are the same.

    \b
    Examples:
      python run.py prepare --input 'wiki/*' --vocab vocab.txt --output prepared
      python run.py prepare --input 'gs://b/c4/*' --vocab vocab.txt --output gs://b/c4-shards \\
          --runner dataflow -- --project=p --region=us-central1 --temp_location=gs://b/tmp
    """
    on_beam = beam_runner(runner, beam_options, workers)
    from keras_bert.data.corpus.documents import Corpus, require_without_written
    from keras_bert.data.corpus.held_out import TRAIN, VALIDATION
    from keras_bert.data.shards.document_tokenizer import DocumentTokenizer
    from keras_bert.data.shards.prepare import ShardSettings
    from keras_bert.data.shards.prepare import prepare as prepare_here
    from keras_bert.text.marks import read_phrases

    if whole_words:
        from keras_bert.text.marks import require_jieba

        require_jieba()
    if phrase_tags and (reading["filters"] or reading["bad_words"]):
        raise UserError(
            "--phrase-tags: needs text that is not filtered, because filters drop lines that have tags. Received: "
            "--filters or --bad-words. Filter the text first, or leave out the tags."
        )
    names = [name.strip() for name in phrase_tags.split(",")] if phrase_tags else []
    tags = from_mapping(DataConfig, {"phrase_tags": names}).phrase_tags
    corpus = Corpus(inputs, corpus_config(**reading))
    vocabulary, lower_case = given_vocabulary(vocab, lower_case)
    marks = (whole_words, read_phrases(phrases) if phrases else (), tags)
    corpus.require_without(vocab, phrases, reading["bad_words"])
    require_without_written("--input", inputs, [join(output, TRAIN, "meta.json"), join(output, vocabulary.file_name)])
    tokenizer = DocumentTokenizer(vocabulary, lower_case, *marks, given_prefix_space(vocab, vocabulary))
    settings = ShardSettings(tokenizer, validation_share, shard_megabytes, collocations)
    if on_beam:
        from keras_bert.data.pipeline.prepare import prepare as prepare_on_beam

        summary = prepare_on_beam(corpus, settings, output, on_beam)
    else:
        summary = prepare_here(corpus, settings, output, workers)
    _log.info(f"{corpus.report}\n{summary}".strip())
    if not summary.documents[VALIDATION]:
        _log.info(
            f"Written: {output}, with no documents for validation, which `pretrain` needs. Separate documents by blank "
            "lines or give more files, of which --validation-share is held out, and prepare them again."
        )
        return
    recipe = vocabulary.example_recipe
    _log.info(f"Written: {output}. Next: {PROGRAM} pretrain --config {recipe} --data {shlex.quote(output)}")
