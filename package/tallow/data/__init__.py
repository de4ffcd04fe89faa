"""Datasets, samplers and the `DataLoader`, as in torch.utils.data, and readers of well-known data sets."""

from typing import TYPE_CHECKING

from tallow.data.collate import default_collate, default_convert
from tallow.data.dataloader import DataLoader
from tallow.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from tallow.data.distributed import DistributedSampler
from tallow.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from tallow.data.worker_info import WorkerInfo, get_worker_info
from tallow.lazy_names import names_of

if TYPE_CHECKING:
    from tallow.data.cifar import CIFAR10
    from tallow.data.mnist import MNIST, FashionMNIST
    from tallow.data.stories import TinyStories, TokenBlocks
    from tallow.data.tables import CSVDataset, NPZDataset

LAZY = {  # modules that open files are imported on first use
    "CIFAR10": "tallow.data.cifar:CIFAR10",
    "CSVDataset": "tallow.data.tables:CSVDataset",
    "FashionMNIST": "tallow.data.mnist:FashionMNIST",
    "MNIST": "tallow.data.mnist:MNIST",
    "NPZDataset": "tallow.data.tables:NPZDataset",
    "TinyStories": "tallow.data.stories:TinyStories",
    "TokenBlocks": "tallow.data.stories:TokenBlocks",
}

__all__ = [
    "CIFAR10",
    "MNIST",
    "BatchSampler",
    "CSVDataset",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "FashionMNIST",
    "IterableDataset",
    "NPZDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "TinyStories",
    "TokenBlocks",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
