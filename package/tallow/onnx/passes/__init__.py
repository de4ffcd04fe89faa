"""Clean-up of the graph of a loaded file, one pass per file."""
