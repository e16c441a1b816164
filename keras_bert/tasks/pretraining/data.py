"""The data of a pretraining run: its vocabulary and shards, made once in the run's folder or by `prepare`."""

import functools
from collections.abc import Callable, Iterator

from keras_bert import files
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.data.corpus.held_out import TRAIN, training_documents
from keras_bert.data.shards.prepare import prepare
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.data.shards.unfinished import UnfinishedWork
from keras_bert.errors import UserError
from keras_bert.program import same_command
from keras_bert.tasks.pretraining.given_shards import check_settings, given_folder, vocabulary_of_shards
from keras_bert.tasks.pretraining.marks import word_marks_for
from keras_bert.tasks.pretraining.run_text import PreparedText, corpus_of, remove_other_data
from keras_bert.tasks.pretraining.run_vocabulary import run_vocabulary
from keras_bert.text.phrases import read_phrases
from keras_bert.text.tokenizers import Tokenizer, make_tokenizer


def prepare_run_data(
    config: PretrainConfig, folder: str, report: Callable[[str], object], is_settled: bool = False
) -> Tokenizer:
    """Makes vocab.txt and the shards in `folder` unless they are there already, made from the same text.

    If `data.files` is a folder written by `prepare`, its shards are used in place, with the vocabulary and casing they
    were made with.

    Args:
        config: the recipe.
        folder: the run's data folder.
        report: receives one line of text at a time.
        is_settled: whether data that are there are used whatever their text: the run has learned from them, or another
            process of it has compared them.

    Returns: the run's tokenizer.

    Raises:
        UserError: the prepared folder, or the data in the run's folder, was made with another tokenizer than the
            recipe's; or the prepared folder with other filters, phrases or share of validation.
    """
    prepared = given_folder(config)
    corpus = functools.cache(lambda: corpus_of(config))  # Settled shards need no text.
    if not is_settled:
        remove_other_data(config, PreparedText(prepared) if prepared else corpus(), folder, report)

    def training_texts() -> Iterator[str]:
        return training_documents(corpus().documents(), config.data.validation_share)

    given = vocabulary_of_shards(config, prepared) if prepared else None
    vocabulary = run_vocabulary(config, folder, training_texts, report, given)
    lower_case = config.vocabulary.lower_case
    shards = prepared or files.join(folder, "shards")
    if prepared:
        report(f"Using the prepared shards in {prepared}.")
    elif not files.exists(shards) or UnfinishedWork.is_in(shards):
        report("Preparing the text.")
        word_marks = word_marks_for(config.masking, corpus().documents())
        summary = prepare(
            corpus().documents(),
            vocabulary,
            lower_case,
            shards,
            config.data.validation_share,
            config.data.shard_megabytes,
            word_marks=word_marks,
            phrases=read_phrases(config.data.phrases) if config.data.phrases else (),
            phrase_tags=config.data.phrase_tags,
            inputs=corpus().fingerprint(),
            report=report,
            reading=corpus().settings(),
            record=corpus().record,
            # A run has no --workers; it takes all cores.
            remedy=f"Run {same_command()} to resume where it stopped. To use fewer processes, prepare the text first "
            "with `prepare --workers N` and give its folder as --data.",
        )
        report(f"{corpus().report}\n{summary}".strip())
    meta = ShardSet.open(files.join(shards, TRAIN), vocabulary, verify=False).meta
    if prepared:
        check_settings(config.data, meta, prepared)
    made_with = meta["lower_case"]
    if lower_case != made_with and not (prepared and lower_case):  # True is the default of a recipe that does not say.
        raise UserError(
            f"{shards}: made with vocabulary.lower_case {made_with}. Received: {lower_case}. "
            "Use the setting of the shards, or run `prepare` again."
        )
    return make_tokenizer(vocabulary, made_with)


def shards_folder(config: PretrainConfig, folder: str, side: str) -> str:
    """The folder with a run's shards of one side, `held_out.TRAIN` or `VALIDATION`; `folder` is its data folder."""
    return files.join(given_folder(config) or files.join(folder, "shards"), side)
