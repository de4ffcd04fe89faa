"""torch.utils.data._utils.pin_memory: batches in pinned memory."""

from tallow.data.collate import pin_memory as pin_memory
