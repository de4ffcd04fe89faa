"""The small language model that comes with tallow: the grammar its stories are made by, and its training."""
