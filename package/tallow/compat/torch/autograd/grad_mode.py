"""Names of `torch.autograd.grad_mode` that tallow itself does not have."""

from tallow.compat.torch.autograd import set_multithreading_enabled as set_multithreading_enabled
