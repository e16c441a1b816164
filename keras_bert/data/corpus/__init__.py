"""Documents from users' corpora, filtered, and split into training and validation."""
