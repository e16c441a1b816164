"""Loads any BERT for use from Python: `keras_bert.load(MODEL)`."""

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import keras
import numpy as np
import tensorflow as tf
from scipy.sparse import csr_array

from keras_bert.checkpoints.model_folder import ModelFolder, open_model_folder
from keras_bert.checkpoints.stored_tensors import LoadReport
from keras_bert.config.inference import SPARSE, TEXT_POOLINGS, RetrievalConfig, SamplingConfig
from keras_bert.config.reading import FIELD, TRUNCATE, WINDOWS
from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath
from keras_bert.core.program import PROGRAM
from keras_bert.core.runtime import require_backend
from keras_bert.core.settings import Positive, checked
from keras_bert.inference.language_models import Continuation, Filling, TextGenerator, fill_masks
from keras_bert.inference.preprocessing import Preprocessor
from keras_bert.inference.retrieval import Passage, RetrievalResult, evaluate_retrieval, retrieval_set
from keras_bert.inference.sparse_embedding import SparseEmbedder
from keras_bert.inference.text_embedding import BATCH_TOKENS, Embedder, TextEmbedder
from keras_bert.inference.texts import as_list, text_list
from keras_bert.layers.tensors import normal_replaced_by
from keras_bert.models.bert.config import REPLACED, BertConfig
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.electra.pretraining import ElectraForPreTraining
from keras_bert.models.encoder_decoder import EncoderDecoder
from keras_bert.models.kind import with_article
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.tensor_names import DECODER, MASKED_LM_HEAD, POOLER, REPLACED_TOKEN_HEAD, encoder_of
from keras_bert.tasks.kind import kind_of_head, kind_of_task
from keras_bert.text.tokenizers import Tokenizer, make_tokenizer

_log = logging.getLogger(__name__)

_Made = TypeVar("_Made")


@dataclasses.dataclass
class LoadedModel:
    """A BERT, pretrained or fine-tuned, with its tokenizer.

    Attributes:
        folder: the model folder it was loaded from.
        tokenizer: the tokenizer with the model's vocabulary.
        model: the model of the folder's task, such as a `BertForSequenceClassification`; without a task's head, a
            `BertForPreTraining`, an `EncoderDecoder` or, for a discriminator, an `ElectraForPreTraining`; with no head
            at all, the `BertEncoder` alone.
        report: the newly initialized tensors, which the folder lacks, and the folder's tensors that were not used.
        new_head: the config of a new head requested from `load`; None for the folder's own.
    """

    folder: ModelFolder
    tokenizer: Tokenizer
    model: keras.Model
    report: LoadReport
    new_head: Any = None
    _made: dict[str, Any] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_made": {}}  # Traced functions can be neither copied nor pickled.

    @property
    def path(self) -> str:
        """The path of the folder."""
        return self.folder.path

    @property
    def config(self) -> BertConfig:
        """The architecture."""
        return self.folder.config

    @property
    def head(self) -> Any:
        """The config of the task's head, such as a `ClassificationConfig`; None if there is no such head."""
        return self.new_head or self.folder.head

    @property
    def predicts(self) -> str | None:
        """What its language model head predicts, as `objective.tokens` names it: `masked`, say; None without a head."""
        return self.config.predicts if isinstance(self.model, BertForPreTraining) else None

    @property
    def encoder(self) -> BertEncoder:
        """The encoder, shared with `model`."""
        return encoder_of(self.model)

    @overload
    def encode(
        self, texts: Sequence[str], pooling: Literal["mean", "cls", "max", "last4"] | None = None
    ) -> np.ndarray: ...

    @overload
    def encode(self, texts: Sequence[str], pooling: Literal["tokens"]) -> list[np.ndarray]: ...

    @overload
    def encode(self, texts: Sequence[str], pooling: Literal["sparse"]) -> csr_array: ...

    @overload
    def encode(self, texts: Sequence[str], pooling: str | None) -> np.ndarray | list[np.ndarray] | csr_array: ...

    def encode(self, texts: Sequence[str], pooling: str | None = None) -> np.ndarray | list[np.ndarray] | csr_array:
        """Embeds texts. `cls` is of little use before fine-tuning.

        Args:
            texts: texts, or their UTF-8 as bytes, read as by the export: longer ones are truncated as in fine-tuning.
            pooling: `mean`, `cls`, `max`, `last4` or `tokens`, see `PooledEncoder`; or `sparse`: the masked LM's weight
                for every piece of the vocabulary, mostly 0 (Formal et al. 2021, SPLADE v2). By default the pooling and
                normalization in the folder's files for sentence-transformers; else `mean`.

        Returns: float32 array [texts, hidden]; for `last4` [texts, 4 * hidden]; for `tokens` a list with an array
            [pieces, hidden] for each text, without [CLS] and [SEP]; for `sparse` a SciPy `csr_array` [texts, vocab].

        Raises:
            UserError: an unknown pooling, `last4` for a model with fewer than four layers, `sparse` for one without a
                masked LM head, or the folder's files for sentence-transformers are not supported.
            ValueError: `texts` is not a list of texts.

        Example:
            first, second = keras_bert.load("runs/demo").encode(["The cat sat.", "A dog slept."])
            first @ second / np.linalg.norm(first) / np.linalg.norm(second)
        """
        embedded = self._own_embedder(pooling)(texts)
        return embedded.by_text() if pooling == "tokens" else embedded.vectors

    @checked
    def embedder(
        self, pooling: str | None = None, max_length: int | None = None, batch_tokens: Positive[int] = BATCH_TOKENS
    ) -> Embedder:
        """Returns a `TextEmbedder`, which also reports truncated texts and the offsets of pieces.

        For `sparse`, returns a `SparseEmbedder`, which does the same with the masked LM.

        By default, `pooling` is as for `encode`, and `max_length` as in fine-tuning, else as in the folder's files for
        sentence-transformers, else the model's maximum.

        Example:
            embedded = keras_bert.load("runs/demo").embedder("cls", max_length=8)(["The cat sat."])
            embedded.vectors, embedded.is_cut
        """
        folder, made = self.folder, self.folder.vectors(pooling)
        length, long = folder.vector_length if max_length is None else max_length, folder.reading.long
        if made.pooling == SPARSE:
            model = self._token_model("make sparse vectors")
            return SparseEmbedder(model, self.tokenizer, length, batch_tokens, long)
        return TextEmbedder(
            self.encoder, self.tokenizer, made.pooling, length, batch_tokens, long, normalize=made.normalize
        )

    def _own_embedder(self, pooling: str | None) -> Embedder:
        return self.once(f"embedder by {pooling}", lambda: self.embedder(pooling))

    def preprocessor(
        self, max_length: int | None = None, long: str | None = None, length: str = "fixed"
    ) -> Preprocessor:
        """Returns a Keras layer from strings to the encoder's inputs, for `ds.map` and models that take strings.

        By default, `max_length` and `long` are as in fine-tuning or, without it, the model's maximum and `truncate`.

        Example:
            preprocess = keras_bert.load("runs/demo").preprocessor(max_length=16)
            preprocess(["The cat sat."])["input_word_ids"]      # [1, 16] int32
        """
        reading = self.folder.reading
        way = reading.long if reading.long != WINDOWS else TRUNCATE
        most = reading.max_length if max_length is None else max_length
        return Preprocessor(self.tokenizer, most, long or way, length)

    def predict(self, texts: Sequence[Any], top_k: int | None = None) -> list[Any]:
        """Applies the model's head to each example, as its export does.

        | the model | an example | its answer |
        | --- | --- | --- |
        | a classifier | a text; for pairs, (text, text) | a `Classification` |
        | a multi-label classifier | the same | `{label: probability}` |
        | a regression | the same | a float; for a reranker from 0 to 1 |
        | a tagger | a text, or a list of words | a `TaggedText` |
        | question answering | (question, passage) | a `PassageAnswer` |
        | multiple choice | (context, choices), (context, question, choices) | a `Choice` |
        | pairs of spans | a dict of the export's inputs | a `Classification` |
        | a word segmenter | a text | the text with spaces between its words |
        | sentence vectors | a text; (text, text) | float32 [hidden]; the cosine of the two |
        | a model that writes texts | a text | a `WrittenText` |
        | a masked LM | a text with [MASK] | a `Filling` |

        Args:
            texts: the examples, read as in training.
            top_k: the number of candidates for each [MASK], for a masked LM; None for 5.

        Raises:
            UserError: the folder has no head, the head has no candidates to count, or a text cannot be filled in.
            ValueError: `texts` is not a list, or an example does not have the model's form.

        Example:
            answer = keras_bert.load("runs/demo").predict(["The cat [MASK] on the mat."])[0]
            answer.filled, answer.candidates[0]
        """
        if self.head:
            if top_k is not None:
                received = with_article(self.head.architecture)
                raise UserError(f"top_k: needs a masked LM. Received: {received}. Leave it out.")
            return kind_of_head(self.head).answer(self, as_list(texts))
        return self.fill(text_list(texts), 5 if top_k is None else top_k)

    def rank(self, query: str, passages: Sequence[str]) -> list[tuple[int, float]]:
        """Sorts passages by their scores for a query, with a reranker or another model that scores pairs of texts.

        Returns: `[(index of the passage, its score)]`, the best first; equal scores in the order of the passages.

        Raises:
            UserError: the model does not score pairs of texts.
            ValueError: `passages` is not a list of texts, or the model does not take pairs of texts.
        """
        pairs = [(query, passage) for passage in text_list(passages)]
        scores = self.predict(pairs) if self.head else [None]
        if not all(isinstance(score, float) for score in scores):
            held = with_article(self.head.architecture) if self.head else "one without a task's head"
            raise UserError(
                f"{self.path}: needs a model that scores pairs of texts, to rank passages. Received: {held}. "
                f"Train one with: {PROGRAM} finetune --task rerank --init MODEL"
            )
        return sorted(enumerate(scores), key=lambda ranked: -ranked[1])

    def evaluate_retrieval(
        self,
        queries: Mapping[Any, str] | Sequence[str],
        passages: Mapping[Any, Passage] | Sequence[Passage],
        relevant: Mapping[Any, Any] | Sequence[Any],
        *,
        pooling: str | None = None,
        reranker: "LoadedModel | None" = None,
        **config: Any,
    ) -> RetrievalResult:
        """Searches passages for queries by their vectors, and scores the rankings.

        Args:
            queries: `{id: text}`, or a list of texts, whose ids are their indices.
            passages: as `queries`; a passage may also be a dict with a `title` and a `text`, which are joined by a
                space.
            relevant: for each query, by id or in the list's order, the ids of its relevant passages, or `{id: grade}`.
                Queries without relevant passages do not count.
            pooling: as for `encode`, but with one vector per text. Sparse vectors are compared by dot product.
            reranker: a model whose `rank` sorts the passages found by the vectors.
            config: `precision` and `size`, as for `quantize_vectors`; `query_prefix` and `passage_prefix`, texts in
                front of each; `top_k` (100), how many passages to find; and `skip_same_id`, to skip the passage with
                the query's own id.

        Raises:
            UserError: an unknown id, `relevant` ids that are not in a list, a grade that is not a number, no relevant
                passage, or a setting that the model does not support.
            ValueError: a query or a passage is not a text, or a setting is out of range.

        Example:
            bert = keras_bert.load("runs/demo")
            passages = {"cat": "The cat sat on the mat.", "dog": "A dog slept."}
            found = bert.evaluate_retrieval({"q": "Where did the cat sit?"}, passages, {"q": ["cat"]})
            found.scores["ndcg_at_10"], found.ranking["q"]      # a score; [(passage's id, cosine), …], the best first
        """
        if pooling is not None and pooling not in TEXT_POOLINGS:
            raise UserError(f"pooling: needs one of {', '.join(TEXT_POOLINGS)}. Received: {pooling!r}.")
        rank = reranker.rank if reranker else None
        asked = retrieval_set(queries, passages, relevant)
        return evaluate_retrieval(self._own_embedder(pooling), asked, RetrievalConfig(**config), rank)

    def fill(self, texts: Sequence[str], top_k: int = 5) -> list[Filling]:
        """Predicts the [MASK]s of each text.

        Args:
            texts: texts with at least one [MASK] each.

        Raises:
            UserError: the folder has no masked LM head, or a text has no [MASK] or is too long.
            ValueError: `texts` is not a list of texts.

        Example:
            filling = keras_bert.load("runs/demo").fill(["The cat [MASK] on the mat."], top_k=3)[0]
            [piece for piece, probability in filling.candidates[0]]
        """
        return fill_masks(self._token_model("fill [MASK]s"), self.tokenizer, texts, top_k)

    def generate(
        self,
        texts: Sequence[str],
        max_tokens: int = 50,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
    ) -> list[Continuation]:
        """Continues texts with a left-to-right model.

        Args:
            texts: the beginnings of texts.
            max_tokens: the most pieces to add to each; a model may end a text earlier, by [SEP].
            temperature: 0 adds the most probable piece each time; above 0, pieces are drawn from the probabilities,
                sharpened below 1 and flattened above.
            top_k: draw from that many of the most probable pieces.
            top_p: draw from the fewest pieces whose probabilities add up to that share.
            seed: the draws are a function of the seed and the text.

        Raises:
            UserError: the model is not causal or has no masked LM head, or a text fills its positions.
            ValueError: an option is out of range, or does not apply at temperature 0; or `texts` is not a list of
                texts.
        """
        texts = text_list(texts)
        sampling = SamplingConfig(max_tokens, temperature, top_k, top_p, seed)
        model = self._token_model("generate")
        generator = self.once("generator", lambda: TextGenerator(model, self.tokenizer, self.path))
        return [generator(text, sampling) for text in texts]

    def once(self, name: str, make: Callable[[], _Made]) -> _Made:
        """The result of `make()`, such as a `ServingFunction`, kept by its name and the same in all threads."""
        if name not in self._made:
            self._made.setdefault(name, make())
        return self._made[name]

    def _token_model(self, what_for: str) -> BertForPreTraining:
        """The model. Raises `UserError` if it is not a `BertForPreTraining`; the message names `what_for`."""
        if isinstance(self.model, BertForPreTraining):
            return self.model
        kind = self.folder.model_kind
        if kind.decodes or self.config.predicts == REPLACED:
            raise UserError(
                f"{self.path}: needs a model with a masked LM head to {what_for}. Received: {with_article(kind.title)}."
            )
        held = with_article(self.head.architecture) if self.head else "the encoder alone"
        raise UserError(
            f"{self.path}: needs a masked LM head to {what_for}, and holds {held}. "
            f"Train one on it with: {PROGRAM} pretrain --init MODEL"
        )


@checked
def load(
    path: StrPath, lower_case: bool | None = None, task: str | None = None, labels: Iterable[str] | None = None
) -> LoadedModel:
    """Loads a BERT with its tokenizer.

    `load(MODEL, task="text", labels=["bad", "good"])` gives the encoder a new head, for `fit`.

    Args:
        path: a run folder, a model folder, a Hugging Face or Google folder, a peft adapter's folder, or
            `hf:NAME[@REVISION]`.
        lower_case: whether the tokenizer lower-cases. By default the folder's setting; a Google folder has none, so it
            is inferred from the vocabulary.
        task: a task, as for `finetune`, whose head replaces the model's own.
        labels: the labels of that head, in the order of its logits; None for a task without labels.

    Raises:
        UserError: there is no model, or its files are broken or do not match; or there is no such task, or its head
            needs other labels; or Keras has another backend or `floatx`.
        ValueError: an argument of the wrong type.

    Example:
        bert = keras_bert.load("runs/demo")
        bert.encode(["The cat sat.", "A dog slept on the mat."]).shape
        bert.predict(["The cat [MASK] on the mat."])[0].filled
    """
    require_backend()
    if task is None and labels is not None:
        raise UserError("labels: needs a task, whose new head has them. Received: none. Give one, such as task='text'.")
    folder = open_model_folder(path, lower_case)
    return load_folder(folder) if task is None else _with_new_head(folder, task, labels)


def _with_new_head(folder: ModelFolder, task: str, labels: Iterable[str] | None) -> LoadedModel:
    kind = kind_of_task(task)
    # The characters of a text would be the labels.
    if isinstance(labels, str) or not isinstance(labels, Iterable | None):
        received = f"the text {labels!r}" if isinstance(labels, str) else repr(labels)
        raise UserError(f"labels: needs a list of labels. Received: {received}. Put it into a list.")
    head = kind.new_head(task, labels)
    model = kind.make_model(folder.config, head)
    report = folder.load_into(model, new_parts=[kind.part])
    folder = dataclasses.replace(folder, other_fields={**folder.other_fields, FIELD: {"task": task}})
    return LoadedModel(folder, model_tokenizer(folder), model, report, head)


def load_folder(folder: ModelFolder) -> LoadedModel:
    """Like `load`, but for a folder that is already open."""
    tokenizer = model_tokenizer(folder)
    model, report = _loaded(_model_maker(folder), folder)
    for line in (*folder.notes, *report.lines()):
        _log.warning(line)
    return LoadedModel(folder, tokenizer, model, report)


def _model_maker(folder: ModelFolder) -> Callable[[BertConfig], keras.Model]:
    """Function (config) -> a new model with the folder's heads."""
    if folder.head:
        return functools.partial(kind_of_head(folder.head).make_model, head=folder.head)
    found, kind = folder.parts(), folder.model_kind
    if DECODER in found:
        return EncoderDecoder
    if REPLACED_TOKEN_HEAD in found:
        return ElectraForPreTraining
    if MASKED_LM_HEAD in found:
        return BertForPreTraining
    return functools.partial(kind.make_encoder, with_pooler=kind.encoder_pools or POOLER in found)


def _loaded(make_model: Callable[[BertConfig], keras.Model], folder: ModelFolder) -> tuple[keras.Model, LoadReport]:
    with normal_replaced_by(_uninitialized):
        model = make_model(folder.config)
    report = folder.load_into(model)
    if report.made_new:  # These tensors need the initial values of a new model.
        model = make_model(folder.config)
        report = folder.load_into(model)
    return model, report


def model_tokenizer(folder: ModelFolder) -> Tokenizer:
    """Returns the tokenizer of a model folder. Raises `UserError` if the vocabulary does not fit the model."""
    return make_tokenizer(folder.vocabulary, folder.tokenizer)


def _uninitialized(shape: Sequence[int], dtype: str | None = None) -> "tf.Tensor":
    """A Keras initializer that allocates memory without writing to it.

    Drawing the initial values of BERT-base takes seconds, and pages that are never touched take no memory.
    """
    return tf.raw_ops.Empty(shape=shape, dtype=dtype or "float32", init=False)
