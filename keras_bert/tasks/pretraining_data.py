"""What a pretraining run reads: its vocabulary and its shards, made once in the run's folder."""

from keras_bert import files
from keras_bert.data.corpus import CorpusReport, read_documents
from keras_bert.data.prepare import prepare, training_documents
from keras_bert.data.python_documentation import python_documentation
from keras_bert.errors import UserError
from keras_bert.text.tokenizer import WordPieceTokenizer
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.vocabulary_learning import learn_vocabulary


def prepare_run_data(config, folder, report):
    """Makes vocab.txt and the shards in `folder` where they are not there yet.

    Args:
        config: a `PretrainConfig`.
        folder: the run's data folder.
        report: takes one line of text at a time.

    Returns: the `WordPieceTokenizer` of the run.
    """
    files.make_folder(folder)
    vocabulary_file = files.join(folder, "vocab.txt")
    if not files.exists(vocabulary_file):
        _make_vocabulary(config, report).to_file(vocabulary_file)
    tokenizer = WordPieceTokenizer(vocabulary_file, lower_case=config.vocabulary.lower_case)
    shards = files.join(folder, "shards")
    if not files.exists(shards):
        report("Preparing the text.")
        corpus = CorpusReport()
        prepared = prepare(
            _documents(config, corpus), tokenizer, shards, config.data.validation_share, config.data.shard_megabytes
        )
        report(f"{corpus}\n{prepared}".strip())
    return tokenizer


def shards_folder(folder, side):
    """Where `prepare_run_data` puts the shards of `side` (`data.prepare.TRAIN` or `VALIDATION`)."""
    return files.join(folder, "shards", side)


def _make_vocabulary(config, report):
    wanted = config.model.vocab_size
    if config.vocabulary.file:
        vocabulary = Vocabulary.from_file(config.vocabulary.file)
        if len(vocabulary) != wanted:
            raise UserError(
                f"{config.vocabulary.file}: needs model.vocab_size ({wanted}) rows. Received: {len(vocabulary)}. "
                f"Set model.vocab_size={len(vocabulary)}, or give the model's own vocabulary."
            )
        return vocabulary
    report(f"Learning a vocabulary of {wanted:,} pieces.")
    # Only from the training side: a piece that occurs in held-out text alone must not be known.
    texts = training_documents(_documents(config, CorpusReport()), config.data.validation_share)
    vocabulary = learn_vocabulary(texts, wanted, config.vocabulary.lower_case)
    if len(vocabulary) < wanted:
        report(f"The text gives {len(vocabulary):,} pieces and no more; the model's vocabulary is that large.")
    return vocabulary


def _documents(config, corpus):
    """The recipe's documents; what is left out is written to `corpus`, a `CorpusReport`."""
    config.require_text()
    if config.data.source == "python_documentation":
        return python_documentation()
    return read_documents(files.expand(config.data.files), corpus)
