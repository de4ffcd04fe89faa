"""torch._functorch: the transforms of `torch.func`."""
