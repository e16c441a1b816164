"""The vocabulary of a run: given, or learned once from the training text."""

from keras_bert import files
from keras_bert.checkpoints.model_folder import open_model_folder, vocabulary_path
from keras_bert.errors import UserError
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.vocabulary_learning import learn_vocabulary


def run_vocabulary(config, folder, texts, report, given=None):
    """Makes vocab.txt in `folder` where it is not there yet.

    Args:
        config: a `PretrainConfig`.
        folder: the run's data folder.
        texts: function that gives the texts of the training side, from which alone a vocabulary is learned: a piece
            that occurs in held-out text only must not be known.
        report: takes one line of text at a time.
        given: a vocabulary file to be taken; where None, `vocabulary.file` or that of the model gone on from.

    Returns: the `Vocabulary` of the run.

    Raises:
        UserError: the given vocabulary has not `model.vocab_size` rows.
    """
    path = files.join(folder, "vocab.txt")
    if not files.exists(path):
        files.make_folder(folder)
        given = given or config.vocabulary.file
        if not given and config.init:
            given = open_model_folder(config.init).vocabulary_file
        vocabulary = _of_size(given, config.model.vocab_size) if given else _learn(config, texts, report)
        vocabulary.to_file(path)
    return Vocabulary.from_file(path)


def _of_size(path, wanted):
    vocabulary = Vocabulary.from_file(vocabulary_path(path))
    if len(vocabulary) != wanted:
        raise UserError(
            f"{path}: needs model.vocab_size ({wanted}) rows. Received: {len(vocabulary)}. "
            f"Set model.vocab_size={len(vocabulary)}, or give the model's own vocabulary."
        )
    return vocabulary


def _learn(config, texts, report):
    wanted = config.model.vocab_size
    report(f"Learning a vocabulary of {wanted:,} pieces.")
    vocabulary = learn_vocabulary(texts(), wanted, config.vocabulary.lower_case)
    if len(vocabulary) < wanted:
        report(f"The text gives {len(vocabulary):,} pieces and no more; the model's vocabulary is that large.")
    return vocabulary
