"""The type of what layers take and return."""

from collections.abc import Mapping
from typing import TypeAlias

import keras

# A backend's tensor in eager mode or in a graph, or Keras' symbolic one while a functional model is built.
Tensor: TypeAlias = keras.KerasTensor


# A batch: tensors [batch, …] by name.
Batch: TypeAlias = Mapping[str, Tensor]
# {term: {metric: float32 scalar}}.
Sums: TypeAlias = dict[str, dict[str, Tensor]]
