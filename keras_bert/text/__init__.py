"""From characters to the ids of BERT's vocabulary."""

from keras_bert.lazy import lazy_names

__all__ = ["Vocabulary", "WordPieceTokenizer", "learn_vocabulary", "split_sentences"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Vocabulary": "keras_bert.text.vocabulary",
        "WordPieceTokenizer": "keras_bert.text.tokenizer",
        "learn_vocabulary": "keras_bert.text.vocabulary_learning",
        "split_sentences": "keras_bert.text.sentences",
    },
)
