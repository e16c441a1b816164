"""The settings of recipes, as dataclasses."""
