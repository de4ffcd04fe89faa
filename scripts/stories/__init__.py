"""The built-in story model: the grammar of its stories, and its training."""
