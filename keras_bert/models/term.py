"""The base class of the terms of the pretraining loss, and the registry through which every room finds them.

The package's own terms are the table in `models/objectives.py`; `register_term` adds one from anywhere. As with
`models/kind.py`, the registry is below all rooms that use it, and neither it nor a term needs Keras to be imported.
"""

from __future__ import annotations

import abc
import functools
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    import keras

    from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig
    from keras_bert.layers.tensors import Batch, Tensor
    from keras_bert.models.bert.config import BertConfig
    from keras_bert.models.encoder_with_heads import EncoderWithHeads
    from keras_bert.models.tensor_names import TensorName

_TABLE = "keras_bert.models.objectives"
# How the two segments of a row are chosen. RANDOM_NEXT: consecutive, or the second from another document. SWAPPED:
# consecutive, in either order. RELATED: made of a sentence and another of its document (`data.batches.related_texts`).
# A row's label is 0 for the order of the text, or for related segments; `RUNNING_TEXT` for rows without such segments.
RANDOM_NEXT, SWAPPED, RELATED = "random_next", "swapped", "related"
RUNNING_TEXT = 2


class Rows(NamedTuple):
    """Rows of a batch before anything is masked, from which a term computes its features.

    Attributes:
        word_ids: int32 [batch, seq].
        lengths: int32 [batch], tokens that are not padding.
        segment_ids: int32 [batch, seq].
        pair_labels: int32 [batch], 0, 1 or `RUNNING_TEXT`; see `Term.pairs`. 0 where no row holds a pair.
        shared: int32 [batch, seq], for `RELATED` segments only; see `RelatedTexts`.
    """

    word_ids: Tensor
    lengths: Tensor
    segment_ids: Tensor
    pair_labels: Tensor
    shared: Tensor | None = None


class Term(abc.ABC):
    """A term of the pretraining loss: its labels, head, weight, cost and names.

    The loss of a run is the sum of its terms' losses, each a mean over the predictions of the global batch. A run's
    first term is what the token head predicts (`predicts_tokens`); all others have a head of their own, or share the
    token head.

    Class attributes:
        name: the prefix of its figures (`sbo_loss`), its logits (`sbo_logits`) and its head (`sbo_head`).
        title: its name in commands and messages; `inspect` calls its head "TITLE head".
        heading: the heading of its column in the table of figures, at most 11 characters.
        sentence: its name in a model card's "Pretrained on … by …".
        card_metrics: the metrics that a model card shows.
        weight: the factor on its loss, in its own figure too.
        setting, off: the recipe's setting that switches it on, and the value that leaves it off.
        argument: an argument of `BertForPreTraining` that adds its head, besides `terms`; None for none.
        has_head: whether it has a head of its own.
        pools: whether its head reads the pooled vector.
        reads_states: whether its head may read the last states of tokens other than the predicted ones.
        predicts_tokens: whether it is what the token head predicts.
        predicts_vocabulary: whether its logits are over the vocabulary, at every prediction of a row.
        needs_both_sides: whether it needs bidirectional attention, not left to right.
        label, label_weights: the names of its labels and their weights in a batch; see `labels` and `weights`.
        pairs: how the segments of its rows must be chosen, `RANDOM_NEXT`, `SWAPPED` or `RELATED`; None for any rows.
        zero_label: the meaning of such a pair's label 0, to follow "40% ".
    """

    name: ClassVar[str]
    title: ClassVar[str]
    heading: ClassVar[str]
    sentence: ClassVar[str]
    card_metrics: ClassVar[tuple[str, ...]] = ("accuracy",)
    weight: ClassVar[float] = 1.0
    setting: ClassVar[str] = "objective.auxiliary"
    off: ClassVar[str] = "no such term"
    argument: ClassVar[str | None] = None
    has_head: ClassVar[bool] = True
    pools: ClassVar[bool] = False
    reads_states: ClassVar[bool] = True
    predicts_tokens: ClassVar[bool] = False
    predicts_vocabulary: ClassVar[bool] = False
    needs_both_sides: ClassVar[bool] = True
    label: ClassVar[str]
    label_weights: ClassVar[str] = "example_weights"
    pairs: ClassVar[str | None] = None
    zero_label: ClassVar[str] = ""

    @property
    def head(self) -> str:
        """The model's attribute that holds its head, and the part of a file that holds the head's tensors."""
        return f"{self.name}_head"

    @property
    def output(self) -> str:
        """The name of its logits among the model's outputs."""
        return f"{self.name}_logits"

    def is_on(self, objective: ObjectiveConfig) -> bool:
        """Whether a recipe trains it."""
        return self.name in objective.auxiliary

    def weight_in(self, objective: ObjectiveConfig) -> float:
        """The factor on its loss in a recipe."""
        return self.weight

    def check(self, objective: ObjectiveConfig, masking: MaskingConfig) -> None:
        """Raise `ValueError`, like `core.settings.require`, if other settings of a recipe that trains it do not fit."""
        return

    def features(self, rows: Rows) -> Mapping[str, Tensor]:
        """The tensors [batch, …] that it adds to a batch; runs in the graph of the input pipeline."""
        return {}

    def make_head(self, model: EncoderWithHeads) -> keras.layers.Layer:
        """A new head for a model, with the model's `dtype_policy` and the name `head`; needed only if it `has_head`."""
        raise NotImplementedError

    def unfreeze(self, model: EncoderWithHeads) -> None:
        """Make trainable the weights of a new model that no other term trains."""
        return

    def tensors(self) -> tuple[TensorName, ...]:
        """The names of its head's tensors in files, unless a kind of model has names of its own for them."""
        return ()

    def logits(
        self, head: keras.layers.Layer, encoded: Mapping[str, Tensor], inputs: Batch, training: bool
    ) -> Tensor | None:
        """The head's logits, float32 [..., n].

        Args:
            head: the layer from `make_head`.
            encoded: the encoder's outputs, and the table of its `word_embeddings`.
            inputs: the model's inputs.
            training: whether to apply dropout.

        Returns: None for inputs from which they cannot be computed.
        """
        return head(encoded["pooled_output"], training=training)

    def labels(self, batch: Batch) -> Tensor:
        """The labels to predict, [...]."""
        return batch[self.label]

    def weights(self, batch: Batch) -> Tensor:
        """The weight of each label, float32 [...]; the mean loss divides by their sum."""
        return batch[self.label_weights]

    @abc.abstractmethod
    def metrics(self, logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """`loss` and the other figures of each label, float32 [...]."""

    def flops(self, config: BertConfig, predictions: int) -> int:
        """The FLOPs of its forward pass that `models.sizes.training_flops` does not count.

        That counts the encoder, the token head and one head of two classes on the pooled vector. `predictions` are the
        masked LM's in a row, unused ones included.
        """
        return 0


@functools.cache
def _by_name() -> dict[str, Term]:
    """Every term by its name; starts with the package's own."""
    own: tuple[Term, ...] = importlib.import_module(_TABLE).TERMS
    return {term.name: term for term in own}


def register_term(term: Term) -> Term:
    """Register a term. Raises `ValueError` if its name is taken."""
    if term.name in _by_name():
        raise ValueError(f"{term.name}: already registered.")
    _by_name()[term.name] = term
    return term


def unregister_term(term: Term) -> None:
    """Remove a term from the registry."""
    del _by_name()[term.name]


def all_terms() -> list[Term]:
    """Every term, in the order of registration, which is also the order of heads and figures."""
    return list(_by_name().values())


def term_named(name: str) -> Term:
    """The term with this name. Raises `ValueError` if there is none."""
    if name not in _by_name():
        raise ValueError(f"terms: needs names among {', '.join(_by_name())}. Received: {name!r}.")
    return _by_name()[name]
