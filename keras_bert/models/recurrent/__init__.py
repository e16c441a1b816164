"""BERT with GRUs or LSTMs in place of self-attention."""
