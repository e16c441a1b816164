"""Decoding for encoder-decoders, in the graph: greedy search, sampling and beam search."""
