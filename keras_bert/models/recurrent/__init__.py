"""BERT with GRUs or LSTMs instead of self-attention."""
