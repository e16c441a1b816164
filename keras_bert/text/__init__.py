"""From characters to the ids of BERT's vocabulary."""

from typing import TYPE_CHECKING

from keras_bert.core.imports import lazy_names

if TYPE_CHECKING:
    from keras_bert.text.sentences import split_sentences as split_sentences
    from keras_bert.text.standalone_tokenizer import StandaloneTokenizer as StandaloneTokenizer
    from keras_bert.text.vocabulary import Vocabulary as Vocabulary
    from keras_bert.text.vocabulary_learning import learn_vocabulary as learn_vocabulary
    from keras_bert.text.wordpiece import WordPieceTokenizer as WordPieceTokenizer
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "StandaloneTokenizer": "keras_bert.text.standalone_tokenizer",
            "Vocabulary": "keras_bert.text.vocabulary",
            "WordPieceTokenizer": "keras_bert.text.wordpiece",
            "learn_vocabulary": "keras_bert.text.vocabulary_learning",
            "split_sentences": "keras_bert.text.sentences",
        },
    )

__all__ = ["StandaloneTokenizer", "Vocabulary", "WordPieceTokenizer", "learn_vocabulary", "split_sentences"]
