"""Pretraining runs, and what they write."""
