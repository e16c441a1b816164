"""Opening any BERT for use from Python: `keras_bert.load(MODEL)`."""

import dataclasses
import functools
import logging
from typing import Any

import keras

from keras_bert.checkpoints.load_report import LoadReport
from keras_bert.checkpoints.model_folder import ModelFolder, open_model_folder
from keras_bert.checkpoints.names import MASKED_LM_HEAD
from keras_bert.checkpoints.unwritten import unwritten
from keras_bert.config.bert import BertConfig
from keras_bert.errors import UserError
from keras_bert.inference.fill_mask import fill_masks
from keras_bert.inference.text_embedding import BATCH_TOKENS, TextEmbedder
from keras_bert.layers.initializers import normal_replaced_by
from keras_bert.models.encoder import BertEncoder
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.program import PROGRAM
from keras_bert.task_kinds import kind_of_head
from keras_bert.text.tokenizer import WordPieceTokenizer
from keras_bert.text.vocabulary import Vocabulary


@dataclasses.dataclass
class LoadedModel:
    """A BERT, pretrained or fine-tuned, with its tokenizer.

    Attributes:
        folder: the `ModelFolder` that it came from.
        tokenizer: the `WordPieceTokenizer` of its vocabulary.
        model: where the folder holds a task's head the model of it, such as `BertForSequenceClassification`; else a
            `BertForPreTraining`; where it holds no masked LM head either, the `BertEncoder` alone.
        report: the `LoadReport`: what the folder lacked and was made new, and what in it was not used.
    """

    folder: ModelFolder
    tokenizer: WordPieceTokenizer
    model: keras.Model
    report: LoadReport
    _embedders: dict = dataclasses.field(default_factory=dict, init=False, repr=False)

    @property
    def path(self) -> str:
        """The folder that it came from."""
        return self.folder.path

    @property
    def config(self) -> BertConfig:
        return self.folder.config

    @property
    def head(self) -> Any:
        """The config of the head that a task put on the encoder, such as a `ClassificationConfig`; else None."""
        return self.folder.head

    @property
    def encoder(self):
        return getattr(self.model, "encoder", self.model)

    def encode(self, texts, pooling="mean"):
        """Vectors of texts; raw [CLS] states are poor ones before fine-tuning.

        Args:
            texts: list of str; those longer than the model's positions are cut.
            pooling: `mean`, `cls`, `last4` or `tokens`; see `PooledEncoder`.

        Returns: float32 array [texts, hidden], for `last4` [texts, 4 * hidden]; for `tokens` a list with an array
            [pieces, hidden] for each text, none for [CLS] and [SEP].

        Raises:
            UserError: no such pooling, or `last4` of a model with fewer layers.
        """
        if pooling not in self._embedders:
            self._embedders[pooling] = self.embedder(pooling)
        embedded = self._embedders[pooling](texts)
        return embedded.by_text() if pooling == "tokens" else embedded.vectors

    def embedder(self, pooling="mean", max_length=None, batch_tokens=BATCH_TOKENS):
        """A `TextEmbedder` of this model, which also says how texts were cut and where pieces are."""
        return TextEmbedder(self.encoder, self.tokenizer, pooling, max_length, batch_tokens)

    def predict(self, texts, top_k=5):
        """What the model's head says of each text.

        Args:
            texts: list of str; a classifier of pairs takes pairs of str.
            top_k: how many candidates a [MASK].

        Returns: a classifier's answers, see `classify`; else those of `fill`.

        Raises:
            UserError: the folder held no head, one that says nothing of whole texts, or a text cannot be filled.
        """
        if self.head:
            answers = kind_of_head(self.head).answer_texts(self, texts)
            if answers is not None:
                return answers
            raise UserError(
                f"{self.path}: needs a head for whole texts. Received: {self.head.architecture}. "
                f"Give it to serving_function (docs/serving.md), or: {PROGRAM} predict --model MODEL"
            )
        return self.fill(texts, top_k)

    def fill(self, texts, top_k=5):
        """Fills the [MASK]s of each text; see `fill_masks`.

        Raises:
            UserError: the folder held no masked LM head, or a text cannot be filled.
        """
        if not isinstance(self.model, BertForPreTraining):
            held = f"a {self.head.architecture}" if self.head else "the encoder alone"
            raise UserError(
                f"{self.path}: needs a masked LM head to fill [MASK]s, and holds {held}. "
                f"Train one on it with: {PROGRAM} pretrain --init MODEL"
            )
        return fill_masks(self.model, self.tokenizer, texts, top_k)


def load(path, lower_case=None):
    """Opens a BERT: a run folder, a model folder, a Hugging Face folder or Google's.

    Args:
        path: the folder.
        lower_case: whether texts are lower-cased; where None, as the folder says, or, as Google's does not say, as its
            vocabulary looks.

    Raises:
        UserError: no model there, or its files do not fit together; the file and the tensor are named.
    """
    return load_folder(open_model_folder(path, lower_case))


def load_folder(folder: ModelFolder) -> LoadedModel:
    """As `load`, of a folder that is open already."""
    tokenizer = model_tokenizer(folder)
    model, report = _loaded(_kind(folder), folder)
    for line in (*folder.notes, *report.lines()):
        logging.getLogger("keras_bert").warning(line)
    return LoadedModel(folder, tokenizer, model, report)


def _kind(folder):
    """The class of model that the folder's heads ask for, to be called with a `BertConfig`."""
    if folder.head:
        return functools.partial(kind_of_head(folder.head).make_model, head=folder.head)
    return BertForPreTraining if MASKED_LM_HEAD in folder.parts() else BertEncoder


def _loaded(kind, folder):
    """`(model, LoadReport)` of what `_kind` gives and a folder."""
    with normal_replaced_by(unwritten):
        model = kind(folder.config)
    report = folder.load_into(model)
    if report.made_new:  # They must begin as in any new model.
        model = kind(folder.config)
        report = folder.load_into(model)
    return model, report


def model_tokenizer(folder):
    """The `WordPieceTokenizer` of a `ModelFolder`. Raises `UserError` for a vocabulary that is not the model's."""
    vocabulary = Vocabulary.from_file(folder.vocabulary_file)
    folder.require_length(len(vocabulary))
    return WordPieceTokenizer(vocabulary, **vars(folder.tokenizer))
