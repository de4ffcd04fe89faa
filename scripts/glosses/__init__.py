"""The built-in sentence encoder: WordNet and the pairs of texts from it, and its training."""
