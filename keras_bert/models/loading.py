"""Opening any BERT for use from Python: `keras_bert.load(MODEL)`."""

import dataclasses

import numpy as np

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.config import BertConfig
from keras_bert.errors import UserError
from keras_bert.models.encoder_inputs import encoder_inputs
from keras_bert.models.fill_mask import fill_masks
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.tokenizer import WordPieceTokenizer


@dataclasses.dataclass
class LoadedModel:
    """A pretrained BERT with its tokenizer.

    Attributes:
        config: its `BertConfig`.
        tokenizer: the `WordPieceTokenizer` of its vocabulary.
        model: the `BertForPreTraining`.
    """

    config: BertConfig
    tokenizer: WordPieceTokenizer
    model: BertForPreTraining

    @property
    def encoder(self):
        return self.model.encoder

    def encode(self, texts):
        """One vector a text: the mean of its tokens' last hidden states, [CLS] and [SEP] included.

        Raw [CLS] states are poor sentence vectors before fine-tuning. Texts are cut at the model's last position.

        Args:
            texts: list of str.

        Returns: float32 array [batch, hidden].
        """
        longest = self.config.max_position_embeddings - 2
        rows = [pieces[:longest] for pieces in self.tokenizer(texts).to_list()]
        inputs = encoder_inputs(rows, self.tokenizer.vocabulary)
        states = np.asarray(self.encoder(inputs)["sequence_output"], "float32")
        mask = inputs["input_mask"][..., None]
        return (states * mask).sum(axis=1) / mask.sum(axis=1).astype("float32")

    def predict(self, texts, top_k=5):
        """Fills the [MASK]s of each text; see `keras_bert.models.fill_mask.fill_masks`."""
        return fill_masks(self.model, self.tokenizer, texts, top_k)


def load(path):
    """Opens a model folder, or a run folder that holds one.

    Raises:
        UserError: no model there, or its files do not fit together; the file and the tensor are named.
    """
    folder = open_model_folder(path)
    tokenizer = WordPieceTokenizer(folder.vocabulary_file, lower_case=folder.lower_case)
    if len(tokenizer.vocabulary) != folder.config.vocab_size:
        raise UserError(
            f"{folder.vocabulary_file}: needs {folder.config.vocab_size} rows, as config.json's vocab_size says. "
            f"Received: {len(tokenizer.vocabulary)}. Is it another model's vocabulary?"
        )
    model = BertForPreTraining(folder.config)
    folder.load_into(model)
    return LoadedModel(folder.config, tokenizer, model)
