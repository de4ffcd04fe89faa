"""Parts of scripts/train_emoji.py: names of emoji, their pictures, training and evaluation of the built-in encoder."""
