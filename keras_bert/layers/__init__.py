"""Keras layers: the embedding sum, the encoder block, the heads."""
