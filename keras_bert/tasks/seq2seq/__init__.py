"""Texts written for texts, such as titles, corrections and translations."""
