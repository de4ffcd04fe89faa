"""The built-in speech model: its phrases and voices, and its training."""
