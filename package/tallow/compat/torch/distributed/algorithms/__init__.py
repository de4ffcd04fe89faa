"""torch.distributed.algorithms: what data parallel training can do beyond sums of gradients."""
