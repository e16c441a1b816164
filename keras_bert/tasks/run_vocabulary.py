"""The vocabulary of a run: given, or learned once from the training text."""

from keras_bert import files
from keras_bert.errors import UserError
from keras_bert.text.tokenizer import WordPieceTokenizer
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.vocabulary_learning import learn_vocabulary


def run_tokenizer(config, folder, texts, report):
    """Makes vocab.txt in `folder` where it is not there yet.

    Args:
        config: a `PretrainConfig`.
        folder: the run's data folder.
        texts: function that gives the texts of the training side; called if the vocabulary has to be learned.
        report: takes one line of text at a time.

    Returns: the `WordPieceTokenizer` of the run.
    """
    files.make_folder(folder)
    path = files.join(folder, "vocab.txt")
    if not files.exists(path):
        _make_vocabulary(config, texts, report).to_file(path)
    return WordPieceTokenizer(path, lower_case=config.vocabulary.lower_case)


def _make_vocabulary(config, texts, report):
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
    vocabulary = learn_vocabulary(texts(), wanted, config.vocabulary.lower_case)
    if len(vocabulary) < wanted:
        report(f"The text gives {len(vocabulary):,} pieces and no more; the model's vocabulary is that large.")
    return vocabulary
