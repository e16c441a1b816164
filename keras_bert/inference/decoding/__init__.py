"""Answers of an encoder with a decoder, in the graph: greedy search, sampling and beam search."""
