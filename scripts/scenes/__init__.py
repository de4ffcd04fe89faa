"""Parts of scripts/train_scenes.py: glyphs, scenes, targets, training and evaluation of the built-in detector."""
