"""Names of `torch.autograd` that tallow itself does not have."""
