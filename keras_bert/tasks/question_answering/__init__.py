"""Answers that are spans of a passage."""
