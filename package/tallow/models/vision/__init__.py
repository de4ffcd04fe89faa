"""Encoders of images, one file per architecture, and what loads them with their image processors."""
