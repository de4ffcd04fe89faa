"""torch.ao: quantization and pruning of PyTorch."""
