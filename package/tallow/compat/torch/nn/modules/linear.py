"""Names of `torch.nn.modules.linear` that tallow itself does not have."""

from tallow.nn import Linear


class NonDynamicallyQuantizableLinear(Linear):
    """A linear layer that PyTorch's quantization leaves as it is."""
