"""Fine-tuning runs, and what they write."""
