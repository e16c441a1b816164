"""The type of what layers take and return."""

from typing import TypeAlias

import keras

# A backend's tensor in eager mode or in a graph, or Keras' symbolic one while a functional model is built.
Tensor: TypeAlias = keras.KerasTensor
