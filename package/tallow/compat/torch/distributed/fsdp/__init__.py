"""torch.distributed.fsdp: modules whose parameters are divided among processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from tallow.compat.absent import absent
from tallow.distributed import DeviceMesh, ProcessGroup
from tallow.errors import UnsupportedError
from tallow.nn.module import Module
from tallow.nn.parallel import sharded

_HINT = "use FullyShardedDataParallel"
DataParallelMeshDims = absent("torch.distributed.fsdp.DataParallelMeshDims", _HINT)
share_comm_ctx = absent("torch.distributed.fsdp.share_comm_ctx", _HINT)
CPUOffloadPolicy = absent("torch.distributed.fsdp.CPUOffloadPolicy", _HINT)
FSDPModule = absent("torch.distributed.fsdp.FSDPModule", _HINT)
FlatParameter = absent("torch.distributed.fsdp.FlatParameter", _HINT)
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


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Settings for the state of an optimizer in one process."""


@dataclass
class StateDictSettings:
    """The form of a state_dict, with its settings."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


class FullyShardedDataParallel(sharded.FullyShardedDataParallel):
    """`tallow.nn.parallel.sharded.FullyShardedDataParallel` with the arguments of PyTorch's.

    Arguments that only say when data is sent have no effect. Whole parameters stay until backward, as with
    SHARD_GRAD_OP.

    Raises: UnsupportedError for what would change the result: other strategies, parameters on the CPU, mixed precision,
        ignored modules, and `use_orig_params=True`
    """

    def __init__(
        self,
        module: Module,
        process_group: ProcessGroup | None = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Any = None,
        param_init_fn: Any = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Any = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        refused = {
            "sharding_strategy": sharding_strategy
            not in (None, ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP),
            "cpu_offload": cpu_offload is not None and cpu_offload.offload_params,
            "mixed_precision": mixed_precision not in (None, MixedPrecision()),
            "ignored_modules": bool(ignored_modules),
            "ignored_states": bool(ignored_states),
            "param_init_fn": param_init_fn is not None,
            "use_orig_params": use_orig_params,
        }
        for name, is_refused in refused.items():
            if is_refused:
                raise UnsupportedError(
                    f"FullyShardedDataParallel: {name} is not supported", hint="omit it, or use DistributedDataParallel"
                )
        if device_id is not None:
            module.to(device_id)
        group = device_mesh.get_group() if process_group is None and device_mesh is not None else process_group
        super().__init__(module, group, auto_wrap_policy=auto_wrap_policy, sync_module_states=sync_module_states)

    @staticmethod
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> AbstractContextManager[None]:
        """Let a model have its whole parameters within a block; see `unsharded`."""
        if with_grads:
            raise UnsupportedError("summon_full_params: with_grads=True", hint="gradients stay divided")
        unit: Any = module
        return unit.unsharded(writeback, recurse)

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> Iterator[None]:
        """Accept FULL_STATE_DICT, the form of `state_dict`, for a block. Raises: UnsupportedError for other forms"""
        FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        yield

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> None:
        """Accept FULL_STATE_DICT, the form of `state_dict`. Raises: UnsupportedError for other forms"""
        if state_dict_type is not StateDictType.FULL_STATE_DICT:
            raise UnsupportedError(f"state_dict_type: {state_dict_type}", hint="use StateDictType.FULL_STATE_DICT")

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """Return the wrapped parts of a model; with `root_only`, those that are in no other."""
        units = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        inner = {id(m) for unit in units for m in unit.modules() if m is not unit}
        return [unit for unit in units if not (root_only and id(unit) in inner)]

    def apply(self, fn: Any) -> Any:
        """Call a function with each module, with its whole parameters."""
        with self.unsharded():
            return super().apply(fn)
