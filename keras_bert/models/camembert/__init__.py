"""CamemBERT (Martin et al. 2020)."""
