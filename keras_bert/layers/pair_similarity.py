"""The similarity of vectors of texts: a cosine, times a learned scale for training."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert.layers.tensors import Tensor

INITIAL_SCALE, LARGEST_SCALE = 20.0, 100.0  # Reimers and Gurevych's library; Radford et al. 2021, section 2.5.


@keras.saving.register_keras_serializable(package="keras_bert")
class PairSimilarity(keras.layers.Layer):
    """The scale of cosines, the inverse temperature of their softmax; it is learned as a logarithm (CLIP).

    Call argument: `vectors`, of any shape. Returns: the vectors times the scale, float32.
    """

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        initial = keras.initializers.Constant(float(np.log(INITIAL_SCALE)))
        self.log_scale = self.add_weight(name="log_scale", shape=(1,), initializer=initial, autocast=False)

    def call(self, vectors: Tensor) -> Tensor:
        scale = ops.exp(ops.minimum(ops.convert_to_tensor(self.log_scale), float(np.log(LARGEST_SCALE))))
        return ops.cast(vectors, "float32") * scale

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config()
