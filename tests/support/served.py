"""Small model folders of every kind that can be exported, with a vocabulary that spells every ASCII text."""

import string

import numpy as np
import tensorflow as tf
from tiny import random_weights, sentencepiece_vocabulary, without_dropout

from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION
from keras_bert.export.serving_function import ServingFunction
from keras_bert.models.albert.kind import AlbertConfig
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.roberta.kind import RobertaConfig
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.multiple_choice.task import MultipleChoiceConfig
from keras_bert.tasks.question_answering.task import SpanExtractionConfig
from keras_bert.tasks.segmentation.task import SegmentationConfig
from keras_bert.tasks.tagging.head import CrfTaggingConfig, FeatureTaggingConfig, TokenClassificationConfig
from keras_bert.text import standalone_byte_tokenizer
from keras_bert.text.byte_vocabulary import ByteVocabulary
from keras_bert.text.standalone_byte_tokenizer import byte_characters
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

_LETTERS = string.ascii_lowercase + string.digits
VOCABULARY = Vocabulary(
    [
        *SPECIAL_TOKENS,
        *_LETTERS,
        *(f"##{letter}" for letter in _LETTERS),
        *string.punctuation,
        "the",
        "cat",
        "sat",
        "中",
    ]
)
# Punctuation is a piece without "▁", as in ALBERT's own model; "▁" alone goes before it.
ALBERT_VOCABULARY = sentencepiece_vocabulary(["▁", "▁the", "▁cat", "sat", *_LETTERS, *string.punctuation])
_MERGES = (("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "t"), ("c", "at"), ("Ġ", "cat"))
BYTE_VOCABULARY = ByteVocabulary(
    [*standalone_byte_tokenizer.SPECIAL_TOKENS, *byte_characters().values(), *map("".join, _MERGES)], _MERGES
)
HEADS = {
    "single": ClassificationConfig(("no", "maybe", "yes")),
    "pair": ClassificationConfig(("no", "yes")),
    "multi": ClassificationConfig(("a", "b"), MULTI_LABEL),
    "regression": ClassificationConfig(("score",), REGRESSION),
    "tagging": TokenClassificationConfig(("O", "B-X", "I-X")),
    "features": FeatureTaggingConfig(("N", "V"), "weighted_all", 8),
    "crf": CrfTaggingConfig(("O", "B-X", "I-X"), "bio"),
    "segment": SegmentationConfig(("B", "I", "E", "S"), "bioes"),
    "answering": SpanExtractionConfig(),
    "choice": MultipleChoiceConfig(),
}
KINDS = (*HEADS, "masked_lm", "encoder")
RERANKER = ClassificationConfig(("relevant",), REGRESSION, logistic=True)
# A tagger over SentencePiece, one over byte-level BPE, and a left-to-right model; none of the lists has them.
ALBERT, ROBERTA, CAUSAL = "albert", "roberta", "causal"
_VOCABULARIES = {ALBERT: ALBERT_VOCABULARY, ROBERTA: BYTE_VOCABULARY}
OF_WHOLE_TEXTS = ("single", "pair", "multi", "regression", "masked_lm", "encoder")


def write_served(path, kind, head=None, seed=0, **reading):
    """Writes a model folder of one of `KINDS`, `ALBERT`, `ROBERTA`, `CAUSAL` or another head, with `reading` in its
    config.json."""
    sizes = {"max_position_embeddings": 40, "num_hidden_layers": 1}
    vocabulary = _VOCABULARIES.get(kind, VOCABULARY)
    config = without_dropout(vocab_size=len(vocabulary), **sizes)
    if kind == ALBERT:
        sizes |= {"hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 32, "embedding_size": 8}
        config, head = AlbertConfig(len(vocabulary), **sizes), head or HEADS["tagging"]
    if kind == ROBERTA:
        sizes |= {"hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 32}
        config, head = RobertaConfig(len(vocabulary), **sizes), head or HEADS["tagging"]
    head = head or HEADS.get(kind)
    if head:
        model = kind_of_head(head).make_model(config, head)
    else:
        config.attention = "causal" if kind == CAUSAL else config.attention
        model = (BertEncoder if kind == "encoder" else BertForPreTraining)(config)
    random_weights(model, seed)
    reading = {"pair": True, **reading} if kind == "pair" else reading
    write_model_folder(str(path), model, vocabulary, lower_case=kind != ROBERTA, head=head, task=reading)
    return str(path)


def columns_of(function, texts, signature="serving_default"):
    """What a signature on strings takes, made of texts, in reverse order in a second column: questions are twenty bytes
    long, and choices are two."""
    columns = []
    for number, spec in enumerate(function.inputs[signature]):
        column = texts[:: 1 - 2 * min(number, 1)]
        if spec.name == "question":
            column = [text[:20] for text in column]
        array = np.empty([len(column), *(2 for _ in spec.shape[1:])], object)
        array.T[...] = column  # Broadcast over the choices of each.
        if array.ndim == 2:
            array[:, 1] = b"cat"
        columns.append(array)
    return columns


def ops_of_graphs(function):
    """(ops of all signatures and of the functions that they call, the names of these functions)."""
    graphs = [signature.graph.as_graph_def() for signature in function.signatures.values()]
    functions = [each for graph in graphs for each in graph.library.function]
    ops = {node.op for graph in graphs for node in graph.node}
    ops |= {node.op for each in functions for node in each.node_def}
    return ops, {each.signature.name for each in functions}


def outside(ops):
    """The ops that touch files, connections or Python, by the words in TensorFlow's names of such ops."""
    words = ("File", "Save", "Restore", "Checkpoint", "Directory", "PyFunc", "Rpc", "Send", "Recv", "Dataset")
    return [op for op in ops if any(word in op for word in words)]


class ReloadedExport(ServingFunction):
    """The signatures of a version's folder, as TensorFlow alone opens them, called like its `ServingFunction`."""

    def __init__(self, folder, function):
        self._loaded = tf.saved_model.load(str(folder))
        self.inputs = function.inputs
        self.signatures = {name: self._by_position(name) for name in function.inputs}

    def _by_position(self, signature):
        serve, names = self._loaded.signatures[signature], [spec.name for spec in self.inputs[signature]]
        return lambda *tensors: serve(**dict(zip(names, tensors, strict=True)))
