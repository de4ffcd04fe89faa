"""Names of `torch.cuda` that tallow itself does not have."""

from tallow.compat.absent import absent

StreamContext = absent("torch.cuda.StreamContext", "use torch.cuda.stream")
