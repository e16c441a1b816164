"""What counts as right."""

import numpy as np

from keras_bert.layers.heads import cross_entropy


def test_of_equal_logits_the_first_is_the_prediction():
    """In bfloat16 the largest logits are often equal: each label among them must not count as right."""
    logits = np.array([[1.0, 3.0, 3.0], [1.0, 3.0, 3.0], [2.0, 1.0, 0.0]], "float32")
    received = cross_entropy(logits, np.array([1, 2, 0], "int32"))
    np.testing.assert_array_equal(received["accuracy"], [1.0, 0.0, 1.0])
    np.testing.assert_allclose(received["loss"][2], np.log(1 + np.exp(-1) + np.exp(-2)), rtol=1e-6)
