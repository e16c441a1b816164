"""Tasks: their data, heads, scores and runs."""
