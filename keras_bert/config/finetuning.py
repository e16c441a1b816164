"""A fine-tuning experiment: the settings in `configs/finetune/*.yaml`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, get_args

from keras_bert.config.corpus import TableFormat
from keras_bert.config.features import TAGGING_TASKS, FeaturesConfig
from keras_bert.config.initialization import ReplacedWeightsConfig
from keras_bert.config.reading import Long
from keras_bert.config.recipes import name_from_file
from keras_bert.config.teacher import TeacherConfig
from keras_bert.config.training import OptimizerConfig, RunConfig
from keras_bert.core import settings
from keras_bert.core.settings import (
    BelowOne,
    Bounds,
    Checked,
    Dropout,
    NotNegative,
    OpenShare,
    Positive,
    require,
    require_multiple,
)
from keras_bert.core.yaml_and_json import read_yaml

ProblemType = Literal["single_label_classification", "multi_label_classification", "regression"]
SINGLE_LABEL, MULTI_LABEL, REGRESSION = PROBLEM_TYPES = get_args(ProblemType)
# What a pair of vectors is trained on.
VectorLoss = Literal["in-batch", "cosine", "cosent", "triplet"]
IN_BATCH, COSINE, COSENT, TRIPLET = get_args(VectorLoss)
# The schemes in which a head can learn entities.
LearnedScheme = Literal["bio", "bioes"]
BIO, BIOES = get_args(LearnedScheme)
# What a tagger reads together.
TaggedRows = Literal["sentence", "document"]
SENTENCE, DOCUMENT = get_args(TaggedRows)
# The units that each kind changes, and the share of them that it changes unless the setting gives one.
WORDS, BLANKS, CHARACTERS = "words", "blanks", "Chinese characters"
KINDS = {
    "typo": (WORDS, 0.3),
    "swap": (WORDS, 0.3),
    "case": (WORDS, 0.3),
    "homoglyph": (WORDS, 0.3),
    "addspace": (WORDS, 0.3),
    "nospace": (BLANKS, 1.0),
    "zh-shape": (CHARACTERS, 0.1),
    "zh-sound": (CHARACTERS, 0.1),
    "zh-drop": (CHARACTERS, 0.1),
    "zh-double": (CHARACTERS, 0.1),
}


class NoiseSetting(NamedTuple):
    """A kind of noise, one of `KINDS`, and the share of its units to change, above 0 and at most 1."""

    kind: str
    share: float


def noise_setting(text: str, key: str = "noise") -> NoiseSetting:
    """Reads `KIND` or `KIND=SHARE`. Raises `ValueError`, which names the `key`, for any other text."""
    kind, has_share, value = text.partition("=")
    try:
        share = float(value) if has_share else KINDS[kind][1] if kind in KINDS else 0.0
    except ValueError:
        share = 0.0
    needed = f"KIND or KIND=SHARE, a kind of {', '.join(KINDS)} and a share above 0 and at most 1"
    require(kind in KINDS and 0.0 < share <= 1.0, key, needed, text)
    return NoiseSetting(kind, share)


@dataclass
class NoiseConfig(Checked):
    """Training on noisy copies of the examples too, which makes an epoch 1 + kinds x copies times as long.

    Attributes:
        kinds: kinds of noise, such as typo=0.3; `evaluate --help` lists them.
        copies: copies of the examples with each kind of noise.
    """

    kinds: list[str] = field(default_factory=list)
    copies: Positive[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        is_distinct = len({noise_setting(kind, "kinds") for kind in self.kinds}) == len(self.kinds)
        require(is_distinct, "kinds", "each noise once; noise.copies makes several", self.kinds)


@dataclass
class TaskDataConfig(Checked):
    """Where a task's examples are.

    Attributes:
        folder: folder with the task's own files, such as GLUE's, or with data sets prepared by TFDS (TensorFlow
            Datasets); by default TFDS's own folder, into which a missing data set is downloaded.
        train: examples to train on: a file in the task's own format, a table (CSV, JSON, Parquet, …), tfds:NAME or
            hf:datasets/ORG/NAME.
        dev: examples to validate on; by default, for `text`, `few-shot`, `rerank`, `seq2seq` and `qa`, a share of
            `train`.
        test: examples to predict once the model is trained.
        texts: column that holds the text: its name or, in a CSV or TSV without a header, its number from 0. Give two
            for pairs of texts; `pairs-contrastive` takes more, and each after the second holds a hard negative of the
            pair.
        label: column that holds the label: its name or its number from 0.
        word: column that holds the word in files of tagged words: its name or its number from 0.
        scheme: how entities are marked in the files: iob1, bio or bioes; by default inferred from the labels.
        language: language to train XNLI in.
        learned_scheme: how a tagger's head marks entities.
        scoring: whether answers of `qa` are scored by `words` or `characters`.
        kind: what a label is: one class, several classes, or a number.
        separator: what separates several classes in one cell.
        format: how tables are written, if their names and contents do not show it. ssv: semicolons; tsv: tabs, quoted
            cells; raw_tsv: tabs, no quotes.
        columns: names for the columns of a table without a header.
        dev_share: share of `train` to validate on if there is no `dev`.
        positive: for `pairs-contrastive`: the lowest score at which a pair counts as meaning the same; if `train` has
            no scores, all pairs count.
        shots: examples of each class that `few-shot` draws from `train`; the seed decides which. 0 for all.
        rows: what a tagger reads together: a `sentence`, or the sentences of a `document`, in windows that overlap by
            half, so that each word has at least a quarter of a row before and after it, unless the document ends there.
    """

    folder: str | None = None
    train: str | None = None
    dev: str | None = None
    test: str | None = None
    texts: list[str] = field(default_factory=lambda: ["text"])
    label: str | None = None
    word: str | int | None = None
    scheme: Literal["bio", "iob1", "bioes"] | None = None
    language: str = "en"
    learned_scheme: LearnedScheme = "bio"
    scoring: Literal["words", "characters"] = "words"
    kind: ProblemType = "single_label_classification"
    separator: str = ","
    format: TableFormat | None = None
    columns: list[str] = field(default_factory=list)
    dev_share: OpenShare = 0.1
    positive: float = 4.0
    shots: NotNegative[int] = 0
    rows: TaggedRows = "sentence"


@dataclass
class InputConfig(Checked):
    """How texts become rows.

    Attributes:
        max_length: maximum tokens in a row, special tokens included.
        long: how to read longer texts: `truncate` keeps the beginning; `head_tail` keeps a quarter from the beginning
            and the rest from the end (Sun et al. 2019, section 5.3.1); `windows` makes several rows and averages their
            outputs. Passages of questions and sentences to tag are always read in windows.
        stride: tokens from the start of one window to the next; 0 for half a window or, in passages, 128 tokens.
        max_question_length: pieces to which a question is truncated.
    """

    max_length: Annotated[int, Bounds("at least 8", min=8)] = 128
    long: Long = "truncate"
    stride: NotNegative[int] = 0
    max_question_length: NotNegative[int] = 64


@dataclass
class FinetuneOptimizerConfig(OptimizerConfig):
    """The optimizer of pretraining, but by default a tenth of the run is warm-up.

    Attributes:
        learning_rate: peak learning rate, reached after the warm-up; null derives it from `base_rate` and the model's
            width.
        base_rate: the learning rate for BERT-base, from which the rates of narrower models follow.
    """

    learning_rate: Positive[float] | None = None  # type: ignore[assignment]  # A number once a run has begun.
    warmup_steps: NotNegative[int] = 0
    warmup_share: BelowOne = 0.1
    base_rate: Positive[float] = 3e-5


# LoRA's rate for BERT-base as a multiple of the one for all weights: some 3e-4 to 5e-4, as in Hu et al. 2021.
_LORA_FACTOR = 10


def default_rate(base_rate: float, width: int, with_lora: bool = False) -> float:
    """The learning rate, to two digits, for a model of `width` if `base_rate` suits BERT-base, of width 768.

    It grows with the inverse square of the width, up to 12 times (docs/finetuning.md#learning-rates). BERT-large takes
    base's, as in the paper. ALBERT counts by its width too: it has few parameters because blocks share them, not
    because they are narrow. LoRA's rate is 10 times as high, and grows with the root of that factor.
    """
    factor = min(max(768 / width, 1) ** 2, 12)
    factor = _LORA_FACTOR * factor**0.5 if with_lora else factor
    return float(f"{base_rate * factor:.1e}")


@dataclass
class FinetuneTrainingConfig(RunConfig):
    """The length of a fine-tuning run, what it trains, and how often it validates; see `RunConfig` for the rest.

    The run keeps the checkpoint with the best main metric.

    Attributes:
        seed: seed for new weights, noise, drawn shots, order and dropout.
        epochs: passes over the training examples.
        steps: total training steps, instead of `epochs`; 0 to count epochs. A resumed run may be given more.
        batch_size: examples per step.
        evaluate_every: steps between validations; 0 validates after every epoch.
        patience: validations in a row without a better score that end the run early; 0 for never.
        freeze: train only the head, and the pooler if it is untrained.
        lora_rank: LoRA: instead of the encoder's weights, train low-rank additions of this rank to its kernels, with
            the head and the pooler (Hu et al. 2021); 0 for all weights.
        lora_alpha: the factor on these additions is `lora_alpha / lora_rank`; null for 1.
        dropout: dropout rate to use instead of the encoder's own, for models pretrained without dropout.
        class_weights: `{label: weight}` in the loss; 1 for labels that are not named.
        balance_classes: weight each label by its rarity: examples / (labels x its examples).
        pretrain_minutes: minutes of masked LM on the task's training texts before fine-tuning; 0 for none.
        adversarial: adversarial training: each batch is also learned with the input embeddings changed such that its
            loss grows most, by this share of their length, such as 0.05 (Miyato et al. 2017); 0 for no change. A step
            takes twice as long.
    """

    epochs: Positive[float] = 3.0
    steps: NotNegative[int] = 0
    batch_size: Positive[int] = 32
    evaluate_every: NotNegative[int] = 0
    patience: NotNegative[int] = 0
    freeze: bool = False
    lora_rank: NotNegative[int] = 0
    lora_alpha: Positive[float] | None = None
    dropout: Dropout | None = None
    class_weights: dict[Any, NotNegative[float]] = field(default_factory=dict)  # A label may be a number.
    balance_classes: bool = False
    pretrain_minutes: NotNegative[float] = 0.0
    # Off: once most examples are learned, most logged losses are near zero, and a single hard example is far above.
    loss_band: NotNegative[float] = 0.0
    keep_checkpoints: Positive[int] = 1
    adversarial: BelowOne = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_multiple(self, "steps_per_loop", "evaluate_every")
        require(not (self.lora_rank and self.freeze), "freeze", "an encoder that is not frozen, with lora_rank", True)
        is_used = self.lora_rank or self.lora_alpha is None
        require(is_used, "lora_alpha", "lora_rank, whose additions it scales", self.lora_alpha)


@dataclass
class PreparationConfig(Checked):
    """What the model to start from learns before fine-tuning.

    Attributes:
        kind: what the model first learns from other text. pairs: which words two texts share, for tasks that compare
            texts.
        text: text to prepare the model on, in documents of several sentences: a file, a folder, a quoted glob, a data
            set by name, or a folder that `prepare` wrote.
        recipe: the recipe that prepares the model: a name in configs/pretrain, or a file.
    """

    kind: Literal["pairs"] | None = None
    text: list[str] = field(default_factory=list)
    recipe: str = "match_pairs"

    def __post_init__(self) -> None:
        super().__post_init__()
        needed = "documents to prepare the model on (--prepare-text), with prepare.kind"
        require(not self.kind or self.text, "text", needed, self.text)
        needed = "prepare.kind (--prepare), what to prepare for"
        require(self.kind or not self.text, "text", needed, self.text)
        require(self.kind or self.recipe == PreparationConfig.recipe, "recipe", needed, self.recipe)


@dataclass
class HeadConfig(Checked):
    """What is between the encoder and the answers.

    Attributes:
        bilstm_size: units in each direction of a two-layer BiLSTM between encoder and head, as on the left-to-right
            model of the paper's section 5.1; null for none. Classifiers then read the last state of each direction, not
            the pooler's output.
        crf: put a conditional random field on top, for tagging.
    """

    bilstm_size: Positive[int] | None = None
    crf: bool = False


@dataclass
class VectorsConfig(Checked):
    """How `pairs-contrastive` trains vectors of texts.

    Attributes:
        loss: `in-batch`: each text must pick its partner from those of the batch; `cosine`: the squared difference
            between a pair's cosine and its score; `cosent`: cosines must rank pairs as the scores do; `triplet`: hard
            negatives must be further away than the partner. `cosine` and `cosent` train on all pairs, which need
            scores.
        margin: how far below the partner's cosine a negative's must be, for `triplet`.
        score_range: the lowest and the highest score of your own files, which `cosine` maps to the cosines 0 and 1; by
            default 0 and 1. STS-B's are 0 and 5.
        matryoshka: sizes, such as 384, 192 and 96, to which vectors may be shortened: the loss is the mean over vectors
            cut to each size.
    """

    loss: VectorLoss = "in-batch"
    margin: Positive[float] = 0.2
    score_range: list[float] = field(default_factory=list)
    matryoshka: list[Positive[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        is_triplet, is_cosine = self.loss == TRIPLET, self.loss == COSINE
        require(is_triplet or self.margin == VectorsConfig.margin, "margin", "vectors.loss=triplet", self.loss)
        require(is_cosine or not self.score_range, "score_range", "vectors.loss=cosine", self.loss)
        is_range = not self.score_range or len(self.score_range) == 2 and self.score_range[0] < self.score_range[1]
        require(is_range, "score_range", "the lowest and the highest score", self.score_range)
        is_distinct = len(set(self.matryoshka)) == len(self.matryoshka)
        require(is_distinct, "matryoshka", "sizes that differ", self.matryoshka)


Seq2SeqMetric = Literal["chrf", "bleu", "rouge1", "rouge2", "rougeL", "exact_match"]
SEQ2SEQ_METRICS = get_args(Seq2SeqMetric)


@dataclass
class Seq2SeqConfig(Checked):
    """How `seq2seq` trains an encoder with a decoder to write texts, and how it writes and scores them.

    Attributes:
        max_target_length: maximum tokens of a text to write, including the one that ends it; longer texts are
            truncated.
        min_target_length: minimum tokens to write before the one that ends a text.
        label_smoothing: share of the target's probability that is spread evenly over all tokens.
        metrics: metrics of the texts written; the first one picks the best epoch. chrf and bleu need the package
            sacrebleu, rouge1, rouge2 and rougeL the package rouge-score.
        beams: beams, that is, beginnings that are continued side by side; 1 takes the most probable token each time.
        length_penalty: beams are compared by their log-probability, divided by their length to this power.
        early_stopping: when a beam search ends: true, once as many texts as beams are complete; false, once a longer
            text is unlikely to be better; never, once none can be better.
        no_repeat_ngram: no n-gram of this many tokens is written twice in a text.
        n_best: how many texts `predict` writes for each input, at most `beams`.
    """

    max_target_length: Annotated[int, Bounds("at least 2", min=2)] = 128
    min_target_length: NotNegative[int] = 0
    label_smoothing: BelowOne = 0.0
    metrics: list[Seq2SeqMetric] = field(default_factory=lambda: list(SEQ2SEQ_METRICS))
    beams: Positive[int] = 1
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    no_repeat_ngram: Positive[int] | None = None
    n_best: Positive[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        most, fewest = self.max_target_length, self.min_target_length
        require(fewest <= most, "min_target_length", f"at most max_target_length ({most})", fewest)
        require(self.n_best <= self.beams, "n_best", f"at most beams ({self.beams})", self.n_best)
        is_distinct = len(set(self.metrics)) == len(self.metrics) > 0
        require(is_distinct, "metrics", "one metric or more, each once", self.metrics)


@dataclass
class FinetuneConfig(Checked):
    """All settings of a fine-tuning experiment.

    Attributes:
        task: a name that `finetune --task` takes.
        name: the run's name and, in runs/, its folder.
        init: model to start from: a folder or hf:NAME.
        lower_case: whether texts are lower-cased; by default as the model says.
        from_scratch: use the architecture and vocabulary of the model to start from, but random weights.
        initialization: weights to replace in the model to start from.
        data: where the examples are.
        input: how texts become rows.
        noise: noisy copies to train on.
        features: a tagger over a frozen BERT.
        head: what is between the encoder and the answers.
        vectors: how vectors of texts are trained.
        seq2seq: how a decoder writes texts.
        optimizer: the learning rate and its schedule.
        training: the length of the run, its devices, and what it logs and keeps.
        teacher: a trained model to learn from.
        prepare: what the model to start from learns first.
    """

    task: str
    name: str = "finetune"
    init: str | None = None
    lower_case: bool | None = None
    from_scratch: bool = False
    initialization: ReplacedWeightsConfig = field(default_factory=ReplacedWeightsConfig)
    data: TaskDataConfig = field(default_factory=TaskDataConfig)
    input: InputConfig = field(default_factory=InputConfig)
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    head: HeadConfig = field(default_factory=HeadConfig)
    vectors: VectorsConfig = field(default_factory=VectorsConfig)
    seq2seq: Seq2SeqConfig = field(default_factory=Seq2SeqConfig)
    optimizer: FinetuneOptimizerConfig = field(default_factory=FinetuneOptimizerConfig)
    training: FinetuneTrainingConfig = field(default_factory=FinetuneTrainingConfig)
    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    prepare: PreparationConfig = field(default_factory=PreparationConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        is_tagging = self.task in TAGGING_TASKS
        needed = f"a tagging task ({', '.join(TAGGING_TASKS)})"
        require(is_tagging or not self.head.crf, "head.crf", needed, self.task)
        for key, value in (
            ("training.pretrain_minutes", self.training.pretrain_minutes),
            ("prepare", self.prepare.kind),
        ):
            is_kept = not (self.from_scratch and value)
            require(is_kept, "from_scratch", f"weights that are kept, with {key}", self.from_scratch)
        is_replaced = any(vars(self.initialization).values())
        needed_here = f"the weights that prepare.kind {self.prepare.kind} trains"
        require(not (is_replaced and self.prepare.kind), "initialization", needed_here, "others in their place")
        if self.training.lora_rank:
            needed, rank = "an encoder whose weights are trained", f"training.lora_rank {self.training.lora_rank}"
            require(not self.from_scratch, "from_scratch", needed, rank)
            require(not is_replaced, "initialization", needed, rank)
            require(self.features.kind is None, "features", "an encoder without additions", rank)
        if self.features.kind is None:
            return
        require(is_tagging, "features", needed, self.task)
        needed, features = "an encoder that is trained", f"features.kind {self.features.kind}"
        require(not is_replaced, "initialization", needed, features)
        require(self.training.dropout is None, "training.dropout", needed, features)
        require(not self.training.adversarial, "training.adversarial", needed, features)
        require(not self.head.crf, "head.crf", needed, features)
        needed = "no features.kind, which has a BiLSTM of its own"
        require(self.head.bilstm_size is None, "head.bilstm_size", needed, self.head.bilstm_size)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> "FinetuneConfig":
        """Reads a recipe; `overrides` (`{"section.key": value}`) take precedence. Raises `UserError`."""
        values = read_yaml(path)
        values.setdefault("name", name_from_file(path))
        values.setdefault("task", values["name"])
        return cls.from_mapping(values, overrides)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> "FinetuneConfig":
        """Like `from_file`, but takes the recipe as a mapping."""
        return settings.from_mapping(cls, settings.apply_overrides(cls, dict(values), overrides or {}))
