"""The small speech model that comes with tallow: the phrases and voices that it learnt from, and its training."""
