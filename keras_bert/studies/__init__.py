"""Studies: tables and pictures from many runs."""
