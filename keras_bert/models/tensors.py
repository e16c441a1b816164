"""Types of what the models and objectives take and return."""

from collections.abc import Mapping
from typing import TypeAlias

from keras_bert.layers.tensors import Tensor

# A batch: tensors [batch, …] by name.
Batch: TypeAlias = Mapping[str, Tensor]
# {term: {metric: float32 scalar}}.
Sums: TypeAlias = dict[str, dict[str, Tensor]]
