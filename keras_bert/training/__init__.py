"""The training loop, its step, and all that a run keeps."""
