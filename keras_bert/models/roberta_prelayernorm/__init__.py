"""RoBERTa with LayerNorm before each part of a block."""
