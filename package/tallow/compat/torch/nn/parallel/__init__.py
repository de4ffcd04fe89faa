"""Names of `torch.nn.parallel` that tallow itself does not have."""
