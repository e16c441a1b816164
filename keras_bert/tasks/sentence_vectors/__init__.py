"""Vectors of texts, compared by their cosine."""
