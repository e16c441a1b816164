"""From text to batches of masked examples."""
