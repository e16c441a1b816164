"""A model's answers in Python."""
