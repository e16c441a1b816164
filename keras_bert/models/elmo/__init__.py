"""An ELMo-like model (Peters et al. 2018)."""
