"""Classification from a few labelled texts."""
