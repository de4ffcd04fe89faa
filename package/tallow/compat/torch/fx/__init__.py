"""Names of `torch.fx` that tallow itself does not have."""
