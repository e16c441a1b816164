"""Tables of every format as rows."""
