"""Names of `torch.nn` that tallow itself does not have."""
