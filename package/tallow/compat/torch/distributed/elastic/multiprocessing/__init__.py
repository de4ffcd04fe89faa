"""torch.distributed.elastic.multiprocessing: start processes, and start them again."""
