"""Names of `torch.utils.data` that tallow itself does not have."""
