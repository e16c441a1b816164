"""Decoding for encoder-decoders, in the graph: greedy search and beam search."""
