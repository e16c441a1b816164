"""Batches of rows, as functions of the step."""
