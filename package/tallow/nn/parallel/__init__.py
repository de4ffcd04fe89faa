"""torch.nn.parallel: models on several devices, in several processes."""

from tallow.lazy_names import names_of
from tallow.nn.parallel.data_parallel import DataParallel
from tallow.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]

__getattr__, __dir__ = names_of(__name__)
