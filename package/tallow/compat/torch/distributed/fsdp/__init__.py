"""torch.distributed.fsdp: modules whose parameters are divided among processes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from tallow.compat.absent import absent

_HINT = "use DistributedDataParallel"
CPUOffloadPolicy = absent("torch.distributed.fsdp.CPUOffloadPolicy", _HINT)
FSDPModule = absent("torch.distributed.fsdp.FSDPModule", _HINT)
FlatParameter = absent("torch.distributed.fsdp.FlatParameter", _HINT)
FullyShardedDataParallel = absent("torch.distributed.fsdp.FullyShardedDataParallel", _HINT)
OffloadPolicy = absent("torch.distributed.fsdp.OffloadPolicy", _HINT)
UnshardHandle = absent("torch.distributed.fsdp.UnshardHandle", _HINT)
fully_shard = absent("torch.distributed.fsdp.fully_shard", _HINT)
register_fsdp_forward_method = absent("torch.distributed.fsdp.register_fsdp_forward_method", _HINT)


class ShardingStrategy(Enum):
    """The parts of a model that FSDP divides."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """The time at which FSDP gathers parameters for backward."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """The form of the state_dict of an FSDP module."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """By what the state of an optimizer is looked up."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclass
class MixedPrecision:
    """The dtypes that FSDP computes and sends in."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes that `fully_shard` computes and sends in."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """The parts of an FSDP module that stay on the CPU."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Settings for the state_dict of an FSDP module."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Settings for a whole state_dict."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Settings for the state_dict of one process."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Settings for a divided state_dict."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Settings for the state of an optimizer."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Settings for the whole state of an optimizer."""

    rank0_only: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Settings for the divided state of an optimizer."""

    _use_dtensor: bool = False
