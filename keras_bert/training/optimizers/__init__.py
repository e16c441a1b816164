"""Optimizers, with decoupled weight decay."""
