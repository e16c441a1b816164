"""A pretraining experiment: the settings in `configs/pretrain/*.yaml`."""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from keras_bert.config.corpus import CorpusConfig, FilterConfig, extended_filters
from keras_bert.config.corruption import SENTINELS
from keras_bert.config.initialization import InitializationConfig, named_initialization
from keras_bert.config.objectives import PMI, MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.config.recipes import extended_model, name_from_file
from keras_bert.config.teacher import PretrainingTeacherConfig
from keras_bert.config.training import OptimizerConfig, TrainingConfig, phase_ends, require_warmup
from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.core.files import parent
from keras_bert.core.patterns import expand
from keras_bert.core.settings import Checked, NotNegative, OneOf, OpenShare, Positive, require
from keras_bert.core.yaml_and_json import read_yaml
from keras_bert.models.bert.config import DECODED, MASKED, NEXT, PERMUTED, REPLACED, BertConfig
from keras_bert.models.kind import kind_of_config, kind_of_model_fields, with_article

# They mark data of TensorFlow Datasets, and of the Hugging Face hub.
TFDS_PREFIX, HUB_PREFIX = DATA_SETS = ("tfds:", "hf:")

# Settings of `data` that a source does not use.
_UNUSED = {
    "python_documentation": ("files", "text", "format", "broken_lines", "phrase_tags"),
    "text": (
        *("text", "format", "broken_lines", "shard_megabytes", "shards_per_group", "phrases", "phrase_tags"),
        "collocations",
    ),
}
# The universal parts of speech (universaldependencies.org/u/pos).
_UPOS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
PartOfSpeech = Annotated[str, OneOf(lambda: _UPOS)]
VocabularyKind = Literal["wordpiece", "sentencepiece", "bytes", "xlm-roberta", "t5", "xlnet"]
WORDPIECE, SENTENCEPIECE, BYTES, XLM_ROBERTA, T5, XLNET = get_args(VocabularyKind)
CASED = (BYTES, XLM_ROBERTA, T5)
_MASK = "[MASK]"  # `text.vocabulary.MASK`, which settings cannot import.
_OLD_WHOLE_WORD = (
    "masking.whole_word: is now masking.unit: word. With masking.validation_unit: word it validates as it used to."
)


@dataclass
class VocabularyConfig(Checked):
    """The vocabulary, given or learned from the training text.

    Attributes:
        file: a vocab.txt, a spiece.model, a vocab.json or a sentencepiece.bpe.model; by default `model.vocab_size`
            pieces are learned.
        lower_case: whether texts are lower-cased and lose their accents. Byte-level BPE and the models of XLM-RoBERTa
            and T5 keep case and accents; other SentencePiece models never keep accents. XLNet's is meant for false.
        kind: what is learned: `wordpiece` as for BERT, `bytes` (byte-level BPE) as for RoBERTa, or a SentencePiece
            unigram model: `sentencepiece` as for ALBERT, `xlm-roberta`, `t5` (with its sentinels) or `xlnet`.
        prefix_space: whether byte-level BPE reads each sentence as if a space came before it, so that its first word
            is the same piece as elsewhere; with `init`, the model's own choice unless set.
    """

    file: str | None = None
    lower_case: bool = True
    kind: VocabularyKind = "wordpiece"
    prefix_space: bool = True


@dataclass
class DataConfig(CorpusConfig):
    """Where the text comes from. Settings that a source does not use keep their defaults.

    Attributes:
        source: `files`, or `python_documentation`, which comes with every Python installation; both are prepared, that
            is, tokenized once into shards. `text` is for text that cannot be prepared: plain lines of `files`, or a
            corpus tfds:NAME, are tokenized during the run.
        files: text to train on: files, folders, globs, tfds:NAME[/CONFIG][:SPLIT], hf:datasets/ORG/NAME[:SPLIT], or a
            folder that `prepare` wrote.
        phrases: mark the phrases listed in this file, one per line, for `masking.unit: phrase`.
        phrase_tags: in CoNLL-U files, mark words with these parts of speech (UPOS) as phrases.
        validation_share: share of the documents held out for validation; no vocabulary is learned from them.
        shard_megabytes: size of a shard in megabytes.
        shards_per_group: shards that are shuffled together, in memory.
        collocations: how many collocations to learn from the text, for `masking.unit: pmi`.
    """

    source: Literal["files", "python_documentation", "text"] = "files"
    files: list[str] = field(default_factory=list)
    phrases: str | None = None
    phrase_tags: list[PartOfSpeech] = field(default_factory=list)
    validation_share: OpenShare = 0.02
    shard_megabytes: Positive[float] = 16.0
    shards_per_group: Positive[int] = 4
    collocations: NotNegative[int] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.source == "files" or self.filters == FilterConfig(),
            "filters",
            "source: files; other text is not filtered",
            f"source: {self.source}",
        )
        require(
            not self.phrase_tags or self.filters == FilterConfig(),
            "phrase_tags",
            "no data.filters, which drop lines that have tags",
            self.phrase_tags,
        )
        for key in _UNUSED.get(self.source, ()):
            given = getattr(self, key)
            needed = f"no value if source is {self.source}, which does not use it"
            require(given == getattr(DataConfig(), key), key, needed, given)


@dataclass
class PretrainConfig(Checked):
    """All settings of a pretraining experiment.

    Attributes:
        name: the run's name and, in runs/, its folder.
        init: model to start from: a folder or hf:NAME. The architecture (`model`) is then its own and, by default, so
            is the vocabulary.
        model: the architecture: the name of a file in configs/models, or settings of its own; `extends` may name such a
            file.
        initialization: the initial weights or, with `init`, the weights that replace the model's: `paper`, `corpus`, or
            settings of its own.
        vocabulary: the vocabulary.
        data: the text.
        objective: what a row contains, and what is predicted of it.
        masking: which positions the masked LM predicts.
        phases: parts of the run with lengths and batch sizes of their own, numbered from 0.
        optimizer: the learning rate and its schedule.
        training: the length of the run, its devices, and what it logs and keeps.
        examples: sentences with [MASK] for the trained model to fill in; a left-to-right model continues what is before
            the first [MASK].
        teacher: a model to learn from in addition to the text.
    """

    name: str = "pretrain"
    init: str | None = None
    model: BertConfig = field(default_factory=BertConfig)
    initialization: InitializationConfig = field(default_factory=InitializationConfig)
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    data: DataConfig = field(default_factory=DataConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    phases: list[PhaseConfig] = field(default_factory=lambda: [PhaseConfig()])
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    examples: list[str] = field(default_factory=list)
    teacher: PretrainingTeacherConfig = field(default_factory=PretrainingTeacherConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.phases, "phases", "at least one phase", self.phases)
        total = sum(phase.share for phase in self.phases)
        require(abs(total - 1.0) < 1e-6, "phases", "shares that sum to 1", total)
        for index, phase in enumerate(self.phases):
            require(
                phase.sequence_length <= self.model.max_position_embeddings,
                f"phases.{index}.sequence_length",
                f"at most model.max_position_embeddings ({self.model.max_position_embeddings})",
                phase.sequence_length,
            )

        self._require_attention_of_objective()
        predicted = {self.phase_objective(phase).tokens for phase in self.phases}
        is_learned = not self.teacher.model or predicted == {MASKED}
        require(is_learned, "teacher.model", "masked tokens to predict in all phases", " and ".join(sorted(predicted)))
        for index, text in enumerate(self.examples):
            fits = self.model.predicts != MASKED or _MASK in text
            require(fits, f"examples.{index}", f"at least one {_MASK}, for a model of masked tokens to fill in", text)
        for term in self.objective.trained:
            term.check(self.objective, self.masking)
        needs_prepared = {"unit": ("phrase", PMI), "validation_unit": ("phrase", PMI), "random_from": ("unigram",)}
        for key, values in needs_prepared.items():
            require(
                self.data.source != "text" or getattr(self.masking, key) not in values,
                f"masking.{key}",
                "another value if data.source is text, in which no phrases are marked and no words counted",
                getattr(self.masking, key),
            )
        require(
            self.data.source != "text" or not self.objective.memory_length,
            "objective.memory_length",
            "0 if data.source is text, whose rows do not go on from each other as those of data.source files do",
            self.objective.memory_length,
        )
        kind = kind_of_config(self.model)
        require(
            not self.objective.random_positions or kind.has_positions,
            "objective.random_positions",
            f"false for {with_article(kind.title)}, whose rows have no first position to choose",
            self.objective.random_positions,
        )

        self._require_steps_in_every_phase()

    def phase_objective(self, phase: PhaseConfig) -> ObjectiveConfig:
        """What a phase trains."""
        return dataclasses.replace(self.objective, tokens=phase.tokens or self.objective.tokens)

    @property
    def masks_collocations(self) -> bool:
        """Whether collocations are masked, in training or in validation."""
        return self.objective.masks_tokens and PMI in self.masking.units

    def _require_attention_of_objective(self) -> None:
        """Raises `ValueError` unless attention and objectives fit together."""
        needed, kind = self.model.predicts, kind_of_config(self.model)
        require(
            self.model.is_causal or self.objective.tokens != NEXT,
            "model.attention",
            "causal for objective.tokens next, because other attention sees the token to predict",
            self.model.attention,
        )
        require(
            self.objective.tokens == needed,
            "objective.tokens",
            f"{needed} for {'model.attention causal' if needed == NEXT else 'this model.model_type'}",
            self.objective.tokens,
        )
        others = {DECODED: "predicts tokens with its decoder", REPLACED: "sees both sides of a token"}
        lacks = others.get(needed, "has no attention to make causal")
        without = f"no value for {with_article(kind.title)}, which {lacks}"
        for index, phase in enumerate(self.phases):
            fits = phase.tokens is None or (kind.attends and needed not in others)
            require(fits, f"phases.{index}.tokens", without, phase.tokens)
        if all(self.phase_objective(phase).masks_tokens for phase in self.phases):
            return
        predicted = f"{needed if needed in (DECODED, PERMUTED) else NEXT} tokens are predicted"
        for term in self.objective.trained:
            off = f"{term.off} if {predicted}: {term.title} is of rows that are seen from both sides"
            require(not term.needs_both_sides, term.setting, off, term.name)
        if needed == PERMUTED:
            self._require_spans_of_permutations()

    def _require_spans_of_permutations(self) -> None:
        """Raises `ValueError` if a setting says how to mask, which permutations do not."""
        for key in ("mask_token_share", "random_token_share", "unit", "validation_unit", "random_from"):
            given = getattr(self.masking, key)
            needed = "no value for objective.tokens permuted, which predicts spans and replaces no token"
            require(given == getattr(MaskingConfig(), key), f"masking.{key}", needed, given)

    def _require_steps_in_every_phase(self) -> None:
        steps, shares = self.training.steps, [phase.share for phase in self.phases]

        def fits(steps: int) -> bool:
            ends = phase_ends(steps, shares)
            return all(begin < end for begin, end in zip([0, *ends], ends))

        if not self.training.minutes and not fits(steps):
            nearest = next(filter(fits, range(steps + 1, steps + 1_000)), None)
            known = f", as with {nearest:,} steps" if nearest else ""
            require(False, "training.steps", f"steps in every phase{known}", steps)

    def require_learnable(self, lower_case: bool | None = None) -> None:
        """Raises `UserError` if `vocabulary.kind` does not suit the model, its objective or `lower_case`.

        Args:
            lower_case: the casing that was asked for; None if none was.
        """
        kind, chosen = kind_of_config(self.model), self.vocabulary.kind
        needed, why = kind.vocabularies, with_article(kind.title)
        if self.objective.tokens == DECODED and SENTINELS in self.objective.corruption.kinds:
            needed, why = (T5,), f"objective.corruption.kinds {SENTINELS}"
        if needed and chosen not in needed:
            raise UserError(f"vocabulary.kind: needs {' or '.join(needed)} for {why}. Received: {chosen}.")
        if lower_case and chosen in CASED:
            raise UserError(
                f"--uncased: needs a vocabulary that may be uncased. Received: vocabulary.kind {chosen}, which never "
                "is. Leave --uncased out."
            )

    def require_before_end(self) -> None:
        """Raises `UserError` unless the warm-up ends in the first phase and a trace begins before the run ends.

        Runs limited by time are not checked: their number of steps is not known.
        """
        steps, profile_at = self.training.steps, self.training.profile_at
        first_phase, *_ = phase_ends(steps, [phase.share for phase in self.phases])
        require_warmup(self.optimizer, self.training, steps, first_phase)
        if profile_at >= steps and not self.training.minutes:
            raise UserError(
                f"training.profile_at: needs a step before the end of the run, of {steps:,} steps. "
                f"Received: {profile_at:,}. Choose an earlier step, or train longer."
            )

    def require_text(self) -> None:
        """Raises `UserError` unless the recipe names text to train on, and the files exist."""
        if self.data.source == "python_documentation":
            return
        if not self.data.files:
            raise UserError("data.files: needs text to train on. Received: none. Give --data FILE, folder or 'glob'.")
        require_files(self.data.files)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> "PretrainConfig":
        """Reads a recipe; `overrides` (`{"section.key": value}`) take precedence.

        The recipe's `model` is the name of a file in configs/models (or a path), or a mapping of `BertConfig` fields,
        where `extends` may name such a file. Its `initialization` is one of `config.initialization.NAMED`, or a
        mapping of `InitializationConfig` fields. Its `data.filters` is the name of a file in configs/filters (or a
        path), or a mapping of `FilterConfig` fields, where `extends` may name such a file. `masking.whole_word` of
        older files becomes `masking.unit`.
        """
        values = read_yaml(path)
        values.setdefault("name", name_from_file(path))
        return cls.from_mapping(values, overrides, parent(path))

    @classmethod
    def from_mapping(
        cls, values: Mapping[str, Any], overrides: Mapping[str, Any] | None = None, folder: str = ""
    ) -> "PretrainConfig":
        """Like `from_file`, but takes the recipe as a mapping; a path in `model` may be relative to `folder`."""
        values, overrides = _with_unit(values), dict(overrides or {})
        if "masking.whole_word" in overrides:
            raise UserError(_OLD_WHOLE_WORD)
        # `--set model=tiny` uses another file; `--set model.hidden_size=64` changes a field of the file's model.
        model = overrides.pop("model", values.get("model"))
        if model is not None:
            values["model"] = extended_model(model, folder)
        of_model = {key.removeprefix("model."): value for key, value in overrides.items() if key.startswith("model.")}
        if of_model:
            # One of them, wherever it stands, may choose the kind of model and so which others there are.
            own = settings.section_of(values, "model")
            values["model"] = {**own, "model_type": kind_of_model_fields({**own, **of_model}, "model").model_type}
            overrides.pop("model.model_type", None)
        initialization = overrides.pop("initialization", values.get("initialization"))
        if initialization is not None:
            values["initialization"] = named_initialization(initialization)
        data = settings.section_of(values, "data")
        filters = overrides.pop("data.filters", data.get("filters"))
        if filters is not None:
            values["data"] = {**data, "filters": extended_filters(filters, folder)}
        return settings.from_mapping(cls, settings.apply_overrides(cls, values, overrides))


def require_files(names: Iterable[str]) -> None:
    """Raises `UserError` if a name of text, as in `data.files`, is neither a data set's nor matches a file."""
    expand([name for name in names if not name.startswith(DATA_SETS)])


def _with_unit(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in which `masking.whole_word`, from older recipes and runs, is `masking.unit`."""
    values = dict(values)
    masking = values.get("masking")
    if isinstance(masking, dict) and "whole_word" in masking:
        if "unit" in masking:
            raise UserError(_OLD_WHOLE_WORD)
        masking = dict(masking)
        if masking.pop("whole_word"):
            masking.update(unit="word", validation_unit="word")
        values["masking"] = masking
    return values
