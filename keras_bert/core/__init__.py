"""The base of all other packages: errors, files on any store, locks, settings."""
