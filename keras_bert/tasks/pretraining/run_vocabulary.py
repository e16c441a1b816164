"""The vocabulary of a run: given, or learned once from the training text."""

from collections.abc import Callable, Iterable

from keras_bert import files
from keras_bert.checkpoints.model_folder import open_model_folder, vocabulary_path
from keras_bert.config.pretraining import SENTENCEPIECE, PretrainConfig
from keras_bert.data.shards.prepared_folder import vocabulary_in
from keras_bert.errors import UserError
from keras_bert.text.sentencepiece_learning import learn_sentencepiece
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.vocabulary_learning import learn_vocabulary


def run_vocabulary(
    config: PretrainConfig,
    folder: str,
    texts: Callable[[], Iterable[str]],
    report: Callable[[str], object],
    given: str | None = None,
) -> Vocabulary:
    """The run's vocabulary; its file is made in `folder` unless it is there already.

    Args:
        config: the recipe.
        folder: the run's data folder.
        texts: function () -> the training texts, from which a vocabulary is learned. Held-out text is not among them:
            a piece that only occurs there must stay unknown.
        report: receives one line of text at a time.
        given: the vocabulary file to use; by default `vocabulary.file`, or else that of the model in `init`.

    Raises:
        UserError: the given vocabulary does not have `model.vocab_size` rows.
    """
    if (path := vocabulary_in(folder)) is None:
        files.make_folder(folder)
        own = open_model_folder(config.init).vocabulary_file if config.init else None
        given = given or config.vocabulary.file or own
        vocabulary = _given(given, own, config.model.vocab_size) if given else _learn(config, texts(), report)
        path = files.join(folder, vocabulary.file_name)
        vocabulary.to_file(path)
    vocabulary = Vocabulary.from_file(path)
    return vocabulary.padded(config.model.vocab_size) if config.init else vocabulary


def _given(path: str, own: str | None, wanted: int) -> Vocabulary:
    """The vocabulary in a file, which may be as much smaller than the model's table as that of `init`, `own`, is."""
    vocabulary = Vocabulary.from_file(vocabulary_path(path))
    if len(vocabulary) != wanted and not (own and len(vocabulary) == len(Vocabulary.from_file(own)) < wanted):
        raise UserError(
            f"{path}: needs model.vocab_size ({wanted}) rows. Received: {len(vocabulary)}. "
            f"Set model.vocab_size={len(vocabulary)}, or give the model's own vocabulary."
        )
    return vocabulary


def _learn(config: PretrainConfig, texts: Iterable[str], report: Callable[[str], object]) -> Vocabulary:
    wanted = config.model.vocab_size
    report(f"Learning a vocabulary of {wanted:,} pieces.")
    learn = learn_sentencepiece if config.vocabulary.kind == SENTENCEPIECE else learn_vocabulary
    vocabulary = learn(texts, wanted, config.vocabulary.lower_case)
    if len(vocabulary) < wanted:
        report(f"The text gives only {len(vocabulary):,} pieces; the model's vocabulary will have that size.")
    return vocabulary
