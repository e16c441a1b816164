"""Corruptions of text that an encoder reads and a decoder undoes: those of MASS, BART and T5."""
