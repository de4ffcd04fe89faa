"""Names of `torch.distributions` that tallow itself does not have."""
