"""BERT (Devlin et al. 2018)."""
