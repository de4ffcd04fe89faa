"""torch.nn.modules: the files of `torch.nn`."""
