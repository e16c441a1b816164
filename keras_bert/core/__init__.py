"""What every room stands on: errors, files on any store, locks, settings."""
