"""`run.py vocab`."""

from __future__ import annotations

import logging
import shlex
from typing import TYPE_CHECKING, Any

import click

from keras_bert.checkpoints.model_folder import given_vocabulary
from keras_bert.cli.options import (
    beam_runner,
    corpus_arguments,
    corpus_config,
    corpus_options,
    file_to_write,
    load_tensorflow,
    runner_options,
    setting_option,
    text_casing_option,
    text_option,
    validation_share_option,
)
from keras_bert.config.pretraining import (
    BYTES,
    CASED,
    SENTENCEPIECE,
    T5,
    WORDPIECE,
    XLM_ROBERTA,
    XLNET,
    DataConfig,
    VocabularyConfig,
)
from keras_bert.core.errors import UserError
from keras_bert.core.files import exists, join, parent
from keras_bert.core.program import PROGRAM
from keras_bert.text.tokenizer_files import TOKENIZER_CONFIG

if TYPE_CHECKING:
    from collections import Counter

    from keras_bert.data.corpus.documents import Corpus
    from keras_bert.data.pipeline.runners import Runner

_log = logging.getLogger(__name__)

# The names of vocabularies other than WordPiece in messages, and the endings of their files; the first match counts.
_OTHERS = {
    XLM_ROBERTA: ("a SentencePiece model like XLM-RoBERTa's", "sentencepiece.bpe.model"),
    SENTENCEPIECE: ("a SentencePiece model", ".model"),
    T5: ("a SentencePiece model like T5's", ".model"),
    XLNET: ("a SentencePiece model like XLNet's", ".model"),
    BYTES: ("byte-level BPE", "vocab.json"),
}


@click.command()
@text_option
@corpus_options
@click.option("--size", type=click.IntRange(min=1), help="Size of the vocabulary to learn, special tokens included.")
@click.option(
    "--extend",
    metavar="VOCAB",
    help="Instead of --size: fill the [unused] rows of this vocabulary (a file or hf:NAME) with new words of the text.",
)
@click.option(
    "--unused",
    type=click.IntRange(min=0),
    default=0,
    help="Number of [unused] rows to reserve after the special tokens.",
)
@setting_option(VocabularyConfig, "kind", has_default=True)
@text_casing_option
@validation_share_option
@click.option("--output", required=True, metavar="FILE", callback=file_to_write, help="Vocabulary file to write.")
@runner_options
def vocab(
    inputs: tuple[str, ...],
    size: int | None,
    extend: str | None,
    unused: int,
    kind: str,
    lower_case: bool | None,
    validation_share: float,
    output: str,
    runner: str | None,
    beam_options: tuple[str, ...],
    **reading: Any,
) -> None:
    """Learn a vocabulary from text, or extend one with the words of a new domain.

    Documents that `prepare` holds out for validation are left out, as in a run that learns its own vocabulary.

    \b
    Examples:
      python run.py vocab --input 'wiki/*' --size 16384 --output vocab.txt
      python run.py vocab --input 'wiki/*' --size 30000 --kind sentencepiece --output spiece.model
      python run.py vocab --input 'wiki/*' --size 32000 --kind xlnet --output spiece.model
      python run.py vocab --input 'wiki/*' --size 16384 --kind bytes --output vocab.json
      python run.py vocab --input 'wiki/*' --size 30000 --kind xlm-roberta --output sentencepiece.bpe.model
      python run.py vocab --input 'wiki/*' --size 32100 --kind t5 --output spiece.model
      python run.py vocab --input 'law/*.txt' --extend bert/vocab.txt --output law.txt
      python run.py vocab --input 'wet/*.gz' --size 30522 --output vocab.txt --runner direct
    """
    if (size is None) == (extend is None):
        raise click.UsageError("Give either --size, to learn a vocabulary, or --extend, to extend one.")
    if extend is not None and unused:
        raise click.UsageError("--unused goes with --size: --extend fills the existing [unused] rows.")
    if extend is not None and kind != WORDPIECE:
        raise click.UsageError("--kind goes with --size: --extend takes the kind of its vocabulary.")
    if lower_case and kind in CASED:
        raise UserError(
            f"--uncased: needs a vocabulary that may be uncased. Received: --kind {kind}, which never is. "
            "Leave --uncased out."
        )
    of_file, of_base = _kind_of_file(output), _kind_of_file(extend or "")
    if kind != WORDPIECE or of_base != WORDPIECE:
        _check_other(of_base if extend else kind, extend, unused, runner, output)
    elif of_file != WORDPIECE:
        title, ending = _OTHERS[of_file]
        raise UserError(
            f"--output: needs another name, because {ending} is for {title}. Received: {output}. "
            f"Give vocab.txt, or --kind {of_file}."
        )
    on_beam = beam_runner(runner, beam_options)
    _require_new(output)
    if kind == BYTES:
        from keras_bert.text.byte_vocabulary import merges_path

        _require_new(merges_path(output))
    from keras_bert.data.corpus.documents import Corpus, require_without_written
    from keras_bert.data.corpus.held_out import training_documents
    from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

    reserved = len(SPECIAL_TOKENS) + unused
    if size is not None and size <= reserved:
        raise UserError(f"--size: needs more than the {reserved} special tokens and slots. Received: {size}.")
    corpus = Corpus(inputs, corpus_config(**reading))
    base = None
    if extend is not None:
        base, lower_case = given_vocabulary(extend, lower_case)
        if base.added:  # They are written too.
            _require_new(join(parent(output), TOKENIZER_CONFIG))
    corpus.require_without(extend, reading["bad_words"])
    require_without_written("--input", inputs, [output])
    lower_case = kind != XLNET if lower_case is None else lower_case
    load_tensorflow()
    from keras_bert.text.vocabulary_learning import (
        LEARNERS,
        SMALLEST_COUNT,
        extend_from_counts,
        free_rows,
        learn_from_counts,
    )

    vocabulary: Vocabulary
    if base is not None and extend is not None:
        free_rows(base, extend)  # Fails before the texts are read.
        counts = _word_counts(corpus, lower_case, validation_share, output, on_beam)
        vocabulary, added = extend_from_counts(base, counts, extend)
        first = ", ".join(f"{word} ({count:,})" for word, count in added[:5])
        summary = f"{len(added):,} new words in [unused] rows, the most frequent {first}; all other ids are unchanged."
    elif kind in _OTHERS:
        assert size is not None
        texts = training_documents(corpus.documents("Read"), validation_share)
        vocabulary = LEARNERS[kind](texts, size, lower_case)
        summary = f"{len(vocabulary):,} pieces of {_OTHERS[kind][0]}."
    else:
        assert size is not None
        counts = _word_counts(corpus, lower_case, validation_share, output, on_beam)
        vocabulary = learn_from_counts(counts, size, unused)
        summary = f"{len(vocabulary):,} pieces"
        if unused:
            summary += f", rows {len(SPECIAL_TOKENS)} to {len(SPECIAL_TOKENS) + unused - 1} unused"
        if len(vocabulary) < size:
            summary += f": fewer than {size:,}, because no other pieces occur {SMALLEST_COUNT} times in the text"
        summary += "."
    vocabulary.to_file(output)
    if str(corpus.report):
        _log.info(str(corpus.report))
    _log.info(summary)
    given = "".join(f" --input {shlex.quote(path)}" for path in inputs) + corpus_arguments(**reading)
    given += "" if lower_case else " --cased"
    given += "" if validation_share == DataConfig.validation_share else f" --validation-share {validation_share}"
    _log.info(f"Written: {output}. Next: {PROGRAM} prepare{given} --vocab {shlex.quote(output)} --output prepared")


def _kind_of_file(path: str) -> str:
    """The kind of vocabulary that a file holds, by its name."""
    return next((kind for kind, (_, ending) in _OTHERS.items() if path.endswith(ending)), WORDPIECE)


def _require_new(path: str) -> None:
    """Raises `UserError` if there is a file at a path to write."""
    if exists(path):
        raise UserError(f"{path}: exists already. Remove it, or give another --output.")


def _check_other(kind: str, extend: str | None, unused: int, runner: str | None, output: str) -> None:
    """Raises `UserError` for options that do not go with a vocabulary other than WordPiece."""
    title, ending = _OTHERS[kind]
    if extend is not None:
        raise UserError(
            f"--extend: needs a WordPiece vocabulary, whose [unused] rows take new words. Received: {title}, which has "
            f"none. Learn a new one with --size N --kind {kind}."
        )
    if unused:
        raise UserError(f"--unused: goes with --kind wordpiece. {title.capitalize()} has no unused rows; leave it out.")
    if runner:
        raise UserError(
            f"--runner: goes with --kind wordpiece. {title.capitalize()} is learned in one process; leave it out."
        )
    if not output.endswith(ending):
        raise UserError(f"--output: needs a name that ends in {ending} for {title}. Received: {output}.")
    other = _kind_of_file(output)
    if _OTHERS[other][1] != ending:
        raise UserError(
            f"--output: needs another name, because {_OTHERS[other][1]} is for {_OTHERS[other][0]}. Received: "
            f"{output}. Give spiece.model, or --kind {other}."
        )
    if kind != BYTES:
        from keras_bert.text.sentencepiece_vocabulary import require_sentencepiece

        require_sentencepiece()


def _word_counts(
    corpus: Corpus, lower_case: bool, validation_share: float, output: str, runner: Runner | None
) -> Counter[str]:
    """Returns how often each word occurs in the documents that are not held out."""
    if runner:
        from keras_bert.data.pipeline.count_words import count_words as count_on_beam

        return count_on_beam(corpus, lower_case, validation_share, f"{output}.counts", runner)
    from keras_bert.data.corpus.held_out import training_documents
    from keras_bert.text.vocabulary_learning import count_words

    return count_words(training_documents(corpus.documents("Counted"), validation_share), lower_case)
