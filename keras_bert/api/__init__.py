"""Training from Python and from the command line: from a request to a recipe, its run and its results."""
