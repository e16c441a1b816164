"""Training from Python and from the command line: from what is asked for to a recipe, its run, and what it leaves."""
