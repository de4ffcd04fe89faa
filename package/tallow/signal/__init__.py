"""Signal processing, as torch.signal: its windows."""

from tallow.signal import windows as windows
