"""Encoders of texts, one file per architecture, and what loads them with a head for vectors or labels."""
