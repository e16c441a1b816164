"""BERT in TensorFlow and Keras: from raw text to a pretrained encoder.

Public names and sub-packages such as `keras_bert.text` are imported on first use, because importing TensorFlow takes
seconds. docs/api.md describes the names.
"""

from typing import TYPE_CHECKING

from keras_bert.core.imports import lazy_names
from keras_bert.core.program import VERSION
from keras_bert.public_names import MODULES

if TYPE_CHECKING:  # The names of `public_names.py`, for type checkers.
    from keras_bert import text as text
    from keras_bert.api.finetuning import finetune as finetune
    from keras_bert.api.pretraining import pretrain as pretrain
    from keras_bert.api.run import FinetuningRun as FinetuningRun
    from keras_bert.api.run import PretrainingRun as PretrainingRun
    from keras_bert.api.run import Run as Run
    from keras_bert.checkpoints.model_folder import ModelFolder as ModelFolder
    from keras_bert.checkpoints.model_folder import open_model_folder as open_model_folder
    from keras_bert.checkpoints.stored_tensors import LoadReport as LoadReport
    from keras_bert.checkpoints.writing import write_model_folder as write_model_folder
    from keras_bert.core.errors import RunStopped as RunStopped
    from keras_bert.core.errors import UserError as UserError
    from keras_bert.core.runtime import keep_freed_memory as keep_freed_memory
    from keras_bert.export.serving_function import ServingFunction as ServingFunction
    from keras_bert.export.serving_function import serving_function as serving_function
    from keras_bert.export.signature import Signature as Signature
    from keras_bert.inference.language_models import Continuation as Continuation
    from keras_bert.inference.language_models import Filling as Filling
    from keras_bert.inference.loading import LoadedModel as LoadedModel
    from keras_bert.inference.loading import load as load
    from keras_bert.inference.masked_lm import MaskedLM as MaskedLM
    from keras_bert.inference.preprocessing import Preprocessor as Preprocessor
    from keras_bert.inference.quantization import QuantizedVectors as QuantizedVectors
    from keras_bert.inference.quantization import quantize_vectors as quantize_vectors
    from keras_bert.inference.retrieval import RetrievalResult as RetrievalResult
    from keras_bert.inference.text_embedding import EmbeddedTexts as EmbeddedTexts
    from keras_bert.inference.text_embedding import PooledEncoder as PooledEncoder
    from keras_bert.inference.text_embedding import TextEmbedder as TextEmbedder
    from keras_bert.inference.texts import encoder_inputs as encoder_inputs
    from keras_bert.layers.embeddings import BertEmbeddings as BertEmbeddings
    from keras_bert.layers.encoder_block import EncoderBlock as EncoderBlock
    from keras_bert.layers.encoder_block import SelfAttention as SelfAttention
    from keras_bert.layers.heads import ClassificationHead as ClassificationHead
    from keras_bert.layers.heads import MaskedLMHead as MaskedLMHead
    from keras_bert.layers.heads import NextSentenceHead as NextSentenceHead
    from keras_bert.layers.heads import Pooler as Pooler
    from keras_bert.models.albert.encoder import AlbertEncoder as AlbertEncoder
    from keras_bert.models.albert.kind import AlbertConfig as AlbertConfig
    from keras_bert.models.bart.encoder import BartEncoder as BartEncoder
    from keras_bert.models.bart.kind import BartConfig as BartConfig
    from keras_bert.models.bert.config import BertConfig as BertConfig
    from keras_bert.models.bert.encoder import BertEncoder as BertEncoder
    from keras_bert.models.distilbert.encoder import DistilbertEncoder as DistilbertEncoder
    from keras_bert.models.distilbert.kind import DistilbertConfig as DistilbertConfig
    from keras_bert.models.electra.encoder import ElectraEncoder as ElectraEncoder
    from keras_bert.models.electra.kind import ElectraConfig as ElectraConfig
    from keras_bert.models.electra.pretraining import ElectraForPreTraining as ElectraForPreTraining
    from keras_bert.models.elmo.encoder import ElmoEncoder as ElmoEncoder
    from keras_bert.models.elmo.kind import ElmoConfig as ElmoConfig
    from keras_bert.models.encoder_decoder import EncoderDecoder as EncoderDecoder
    from keras_bert.models.encoder_with_heads import EncoderWithHeads as EncoderWithHeads
    from keras_bert.models.kind import GoogleFiles as GoogleFiles
    from keras_bert.models.kind import ModelKind as ModelKind
    from keras_bert.models.kind import register_model_kind as register_model_kind
    from keras_bert.models.kind import unregister_model_kind as unregister_model_kind
    from keras_bert.models.prelayernorm_glu.encoder import PreLayerNormGluEncoder as PreLayerNormGluEncoder
    from keras_bert.models.prelayernorm_glu.kind import PreLayerNormGluConfig as PreLayerNormGluConfig
    from keras_bert.models.pretraining import BertForPreTraining as BertForPreTraining
    from keras_bert.models.roberta.kind import CamembertConfig as CamembertConfig
    from keras_bert.models.roberta.kind import RobertaConfig as RobertaConfig
    from keras_bert.models.roberta.kind import XlmRobertaConfig as XlmRobertaConfig
    from keras_bert.models.roberta_prelayernorm.encoder import RobertaPreLayerNormEncoder as RobertaPreLayerNormEncoder
    from keras_bert.models.roberta_prelayernorm.kind import RobertaPreLayerNormConfig as RobertaPreLayerNormConfig
    from keras_bert.models.t5.encoder import T5Encoder as T5Encoder
    from keras_bert.models.t5.kind import T5Config as T5Config
    from keras_bert.models.tensor_names import StoredName as StoredName
    from keras_bert.models.tensor_names import TensorName as TensorName
    from keras_bert.models.xlnet.encoder import XlnetEncoder as XlnetEncoder
    from keras_bert.models.xlnet.kind import XlnetConfig as XlnetConfig
    from keras_bert.tasks.classification.head import ClassificationConfig as ClassificationConfig
    from keras_bert.tasks.classification.head import NextSentenceConfig as NextSentenceConfig
    from keras_bert.tasks.classification.in_python import Classification as Classification
    from keras_bert.tasks.classification.network import BertForNextSentencePrediction as BertForNextSentencePrediction
    from keras_bert.tasks.classification.network import BertForSequenceClassification as BertForSequenceClassification
    from keras_bert.tasks.few_shot.network import BertForFewShotClassification as BertForFewShotClassification
    from keras_bert.tasks.few_shot.task import FewShotConfig as FewShotConfig
    from keras_bert.tasks.kind import TaskKind as TaskKind
    from keras_bert.tasks.kind import register as register
    from keras_bert.tasks.kind import unregister as unregister
    from keras_bert.tasks.multiple_choice.in_python import Choice as Choice
    from keras_bert.tasks.multiple_choice.network import BertForMultipleChoice as BertForMultipleChoice
    from keras_bert.tasks.multiple_choice.task import MultipleChoiceConfig as MultipleChoiceConfig
    from keras_bert.tasks.problem import Problem as Problem
    from keras_bert.tasks.question_answering.in_python import PassageAnswer as PassageAnswer
    from keras_bert.tasks.question_answering.network import BertForQuestionAnswering as BertForQuestionAnswering
    from keras_bert.tasks.question_answering.task import SpanExtractionConfig as SpanExtractionConfig
    from keras_bert.tasks.segmentation.task import SegmentationConfig as SegmentationConfig
    from keras_bert.tasks.sentence_vectors.network import BertForSentenceVectors as BertForSentenceVectors
    from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig as SentenceVectorsConfig
    from keras_bert.tasks.seq2seq.network import BertForConditionalGeneration as BertForConditionalGeneration
    from keras_bert.tasks.seq2seq.task import ConditionalGenerationConfig as ConditionalGenerationConfig
    from keras_bert.tasks.seq2seq.task import WrittenText as WrittenText
    from keras_bert.tasks.span_pairs.network import BertForSpanPairs as BertForSpanPairs
    from keras_bert.tasks.span_pairs.task import SpanPairConfig as SpanPairConfig
    from keras_bert.tasks.tagging.feature_network import BertFeatureTagger as BertFeatureTagger
    from keras_bert.tasks.tagging.head import CrfTaggingConfig as CrfTaggingConfig
    from keras_bert.tasks.tagging.head import FeatureTaggingConfig as FeatureTaggingConfig
    from keras_bert.tasks.tagging.head import TokenClassificationConfig as TokenClassificationConfig
    from keras_bert.tasks.tagging.in_python import TaggedText as TaggedText
    from keras_bert.tasks.tagging.network import BertCrfTagger as BertCrfTagger
    from keras_bert.tasks.tagging.network import BertForTokenClassification as BertForTokenClassification
    from keras_bert.tasks.tagging.network import BertSegmenter as BertSegmenter
    from keras_bert.text.byte_pieces import BytePieceTokenizer as BytePieceTokenizer
    from keras_bert.text.byte_vocabulary import ByteVocabulary as ByteVocabulary
    from keras_bert.text.fairseq_pieces import FairseqTokenizer as FairseqTokenizer
    from keras_bert.text.fairseq_vocabulary import FairseqVocabulary as FairseqVocabulary
    from keras_bert.text.sentencepiece import SentencePieceTokenizer as SentencePieceTokenizer
    from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary as SentencePieceVocabulary
    from keras_bert.text.sentences import split_sentences as split_sentences
    from keras_bert.text.standalone_byte_tokenizer import StandaloneByteTokenizer as StandaloneByteTokenizer
    from keras_bert.text.standalone_tokenizer import StandaloneTokenizer as StandaloneTokenizer
    from keras_bert.text.t5_pieces import T5Tokenizer as T5Tokenizer
    from keras_bert.text.t5_vocabulary import T5Vocabulary as T5Vocabulary
    from keras_bert.text.vocabulary import Vocabulary as Vocabulary
    from keras_bert.text.vocabulary_learning import learn_vocabulary as learn_vocabulary
    from keras_bert.text.wordpiece import WordPieceTokenizer as WordPieceTokenizer
    from keras_bert.training.optimizers.adamw import AdamW as AdamW
    from keras_bert.training.schedules import WarmupDecay as WarmupDecay
else:
    __getattr__, __dir__ = lazy_names(__name__, MODULES)

__version__ = VERSION
__all__ = sorted(MODULES)
