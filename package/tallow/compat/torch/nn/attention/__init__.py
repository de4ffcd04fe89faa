"""Names of `torch.nn.attention` that tallow itself does not have."""
