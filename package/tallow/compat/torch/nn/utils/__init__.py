"""Names of `torch.nn.utils` that tallow itself does not have."""
