"""Names of `torch.amp` that tallow itself does not have."""
