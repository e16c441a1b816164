"""Turns texts into rows of ids."""
