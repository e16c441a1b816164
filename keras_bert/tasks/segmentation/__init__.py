"""Words in texts without blanks."""
