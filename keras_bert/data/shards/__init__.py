"""Tokenized documents in files."""
