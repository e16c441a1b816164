"""The corruptions of MASS, BART and T5: an encoder reads corrupted text, and a decoder undoes the corruption."""
