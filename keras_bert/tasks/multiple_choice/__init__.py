"""The best of several choices."""
