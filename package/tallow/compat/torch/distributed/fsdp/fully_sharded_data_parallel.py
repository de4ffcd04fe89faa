"""torch.distributed.fsdp.fully_sharded_data_parallel: a file of PyTorch that has names of torch.distributed.fsdp."""

from tallow.compat.torch.distributed.fsdp import BackwardPrefetch as BackwardPrefetch
from tallow.compat.torch.distributed.fsdp import CPUOffload as CPUOffload
from tallow.compat.torch.distributed.fsdp import FullOptimStateDictConfig as FullOptimStateDictConfig
from tallow.compat.torch.distributed.fsdp import FullStateDictConfig as FullStateDictConfig
from tallow.compat.torch.distributed.fsdp import FullyShardedDataParallel as FullyShardedDataParallel
from tallow.compat.torch.distributed.fsdp import LocalStateDictConfig as LocalStateDictConfig
from tallow.compat.torch.distributed.fsdp import MixedPrecision as MixedPrecision
from tallow.compat.torch.distributed.fsdp import OptimStateKeyType as OptimStateKeyType
from tallow.compat.torch.distributed.fsdp import ShardedOptimStateDictConfig as ShardedOptimStateDictConfig
from tallow.compat.torch.distributed.fsdp import ShardedStateDictConfig as ShardedStateDictConfig
from tallow.compat.torch.distributed.fsdp import ShardingStrategy as ShardingStrategy
from tallow.compat.torch.distributed.fsdp import StateDictType as StateDictType
