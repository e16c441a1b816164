"""XLM-RoBERTa's and CamemBERT's tokenizer in the TensorFlow graph: a SentencePiece model with fairseq's ids."""

import tensorflow as tf

from keras_bert.text.fairseq_vocabulary import FairseqVocabulary
from keras_bert.text.model_pieces import ModelTokenizer

_UNKNOWN = 0  # The model's id of <unk>.


class FairseqTokenizer(ModelTokenizer):
    """Splits texts into the pieces of a SentencePiece model, as XLM-RoBERTa and CamemBERT do."""

    _kind = FairseqVocabulary
    vocabulary: FairseqVocabulary

    def numbered(self, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        """Converts the model's ids to fairseq's."""
        shifted = ids.values + self.vocabulary.dictionary.shift
        return ids.with_values(tf.where(ids.values == _UNKNOWN, self.vocabulary.unk_id, shifted))
