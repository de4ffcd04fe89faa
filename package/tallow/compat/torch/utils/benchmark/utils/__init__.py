"""torch.utils.benchmark.utils: the files of PyTorch that have the names of torch.utils.benchmark."""
