"""RoBERTa-PreLayerNorm with gated feed-forward networks."""
