"""Model folders, in Hugging Face's format and Google's."""
