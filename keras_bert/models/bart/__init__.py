"""BART (Lewis et al. 2020)."""
