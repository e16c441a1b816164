"""From texts to rows of ids."""
