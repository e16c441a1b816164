"""`run.py convert`."""

import logging
import shlex

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import FORMATS, convert_folder
from keras_bert.cli.options import casing_option, folder_to_write
from keras_bert.core.errors import UserError
from keras_bert.core.files import list_folder
from keras_bert.core.locks import folder_taken
from keras_bert.core.program import PROGRAM
from keras_bert.text.standalone_tokenizer import strips
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.vocabulary import Vocabulary

_log = logging.getLogger(__name__)


@click.command()
@click.option("--to", type=click.Choice(FORMATS), required=True, help="Format to write.")
@casing_option
@click.argument("model", metavar="MODEL")
@click.argument("directory", metavar="DIR", callback=folder_to_write)
@click.pass_context
def convert(context: click.Context, to: str, lower_case: bool | None, model: str, directory: str) -> None:
    """Convert a model to Google's or Hugging Face's format, without loss.

    MODEL is a run folder, a model folder, a Hugging Face or Google folder, a peft adapter's folder, or
    hf:NAME[@REVISION] for a model on the Hugging Face hub. DIR is a new folder.

    \b
    Example:
      python run.py convert --to google runs/demo demo_in_tf1
    """
    context.with_resource(folder_taken(directory))
    if list_folder(directory):
        raise UserError(f"{directory}: needs a new or empty folder. Received: one with files in it. Give another DIR.")
    folder = open_model_folder(model, lower_case)
    vocabulary = folder.vocabulary
    for line in folder.notes:
        _log.info(line)
    left_out = convert_folder(folder, to, directory, vocabulary)
    if left_out:
        _log.info(f"Left out, because the model or the format has no place for them: {', '.join(left_out)}.")
    if to == "google":
        _say_what_google_omits(folder.tokenizer, vocabulary)
    _log.info(f"Written: {directory}. Next: {PROGRAM} inspect {shlex.quote(directory)}")


def _say_what_google_omits(tokenizer: TokenizerSettings, vocabulary: Vocabulary) -> None:
    option = "--do_lower_case" + ("" if tokenizer.lower_case else "=false")
    _log.info(f"Google's format does not record casing; run its programs with {option}.")
    if not tokenizer.is_berts_own():
        stripped = strips(tokenizer.lower_case, tokenizer.strip_accents)
        _log.info(
            f"Google's tokenizer cannot be set to strip_accents {stripped}, "
            f"tokenize_chinese_chars {tokenizer.split_chinese}."
        )
    if vocabulary.added:
        _log.info(f"Google's tokenizer does not match the {len(vocabulary.added)} added tokens; it splits them.")
