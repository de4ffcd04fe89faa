"""What trains the built-in sentence encoder: WordNet, pairs of texts with one meaning, training and evaluation."""
