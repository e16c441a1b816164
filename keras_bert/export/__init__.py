"""SavedModels and LiteRT models that take strings."""
