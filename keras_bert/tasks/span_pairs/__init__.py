"""Two spans of a text, classified together."""
