"""torch._vendor: packages that PyTorch carries."""
