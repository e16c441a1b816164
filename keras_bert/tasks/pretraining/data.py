"""What a pretraining run reads: its vocabulary and its shards, made once in the run's folder or by `prepare`."""

import platform

from keras_bert import files
from keras_bert.checkpoints.model_folder import vocabulary_path
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.corpus.held_out import TRAIN, training_documents
from keras_bert.data.corpus.python_documentation import python_documentation
from keras_bert.data.shards.prepare import VOCABULARY_FILE, is_prepared, prepare
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.data.shards.unfinished import UnfinishedWork
from keras_bert.errors import UserError
from keras_bert.tasks.pretraining.run_vocabulary import run_vocabulary
from keras_bert.text.tokenizer import WordPieceTokenizer
from keras_bert.text.vocabulary import Vocabulary


def prepare_run_data(config, folder, report):
    """Makes vocab.txt and the shards in `folder` where they are not there yet.

    Where `data.files` is a folder that `prepare` wrote, its shards are used where they are, with its vocabulary and
    the casing that they were made with.

    Args:
        config: a `PretrainConfig`.
        folder: the run's data folder.
        report: takes one line of text at a time.

    Returns: the `WordPieceTokenizer` of the run.

    Raises:
        UserError: the prepared folder, or what is in the run's, was made with another tokenizer than the recipe's.
    """
    prepared = _prepared_folder(config)

    def training_texts():
        return training_documents(_corpus(config).documents(), config.data.validation_share)

    given = _prepared_vocabulary(config, prepared) if prepared else None
    vocabulary = run_vocabulary(config, folder, training_texts, report, given)
    lower_case = config.vocabulary.lower_case
    shards = prepared or files.join(folder, "shards")
    if prepared:
        report(f"The shards of {prepared} are used as they are.")
    elif not files.exists(shards) or UnfinishedWork.is_in(shards):
        report("Preparing the text.")
        corpus = _corpus(config)
        summary = prepare(
            corpus.documents(), vocabulary, lower_case, shards, config.data.validation_share,
            config.data.shard_megabytes, inputs=corpus.fingerprint(), report=report,
        )  # fmt: skip
        report(f"{corpus.report}\n{summary}".strip())
    made_with = ShardSet.open(files.join(shards, TRAIN), vocabulary, verify=False).meta["lower_case"]
    if lower_case != made_with and not (prepared and lower_case):  # True is what a recipe has that says nothing.
        raise UserError(
            f"{shards}: made with vocabulary.lower_case {made_with}. Received: {lower_case}. "
            "Give the setting of the shards, or run `prepare` again."
        )
    return WordPieceTokenizer(vocabulary, made_with)


def shards_folder(config, folder, side):
    """Where a run with the data folder `folder` finds the shards of a side, `held_out.TRAIN` or `VALIDATION`."""
    return files.join(_prepared_folder(config) or files.join(folder, "shards"), side)


def _prepared_folder(config):
    """The folder that `prepare` wrote, if that is what the recipe's `data.files` names."""
    if config.data.source != "files":
        return None
    prepared = next((path for path in config.data.files if is_prepared(path)), None)
    unfinished = next((path for path in config.data.files if _is_unfinished(path)), None)
    if unfinished:
        raise UserError(f"{unfinished}: `prepare` has not come to its end. Give its command again, which goes on.")
    if prepared and len(config.data.files) > 1:
        raise UserError(
            f"data.files: needs a folder that `prepare` wrote alone. Received: {prepared} and "
            f"{len(config.data.files) - 1} more. Prepare all the text into one folder."
        )
    return prepared


def _is_unfinished(path):
    """Whether an unfinished `prepare` left its work here: in a store it has no other name until it is done."""
    return (
        files.is_remote(path) and not is_prepared(path)
        and UnfinishedWork.is_in(path) and files.exists(files.join(path, TRAIN))
    )  # fmt: skip


def _prepared_vocabulary(config, prepared):
    """The vocabulary file in a prepared folder; one that the recipe names must be the same."""
    path, given = files.join(prepared, VOCABULARY_FILE), config.vocabulary.file
    if given and Vocabulary.from_file(vocabulary_path(given)).fingerprint != Vocabulary.from_file(path).fingerprint:
        raise UserError(
            f"{prepared}: made with the vocabulary in {path}. Received: {given}, which is another. "
            "Leave vocabulary.file out, or run `prepare` again with it."
        )
    return path


def _corpus(config):
    """The recipe's text: a `Corpus`, or the same of the Python documentation."""
    config.require_text()
    return _PythonDocumentation() if config.data.source == "python_documentation" else Corpus(config.data.files)


class _PythonDocumentation:
    report = ""
    documents = staticmethod(python_documentation)

    @staticmethod
    def fingerprint():
        return [["Python", platform.python_version()]]
