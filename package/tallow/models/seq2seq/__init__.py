"""Encoder-decoder models of texts, one file per architecture; `model` is their base."""
