"""torch.distributed.elastic: start processes, and start them again."""
