"""FullyShardedDataParallel: the parameters of a model divided among processes, whole only while they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from tallow.autograd.function import Function
from tallow.core.creation import empty, zeros
from tallow.core.tensor import Tensor
from tallow.distributed import (
    ProcessGroup,
    ReduceOp,
    all_gather_into_tensor,
    all_reduce,
    broadcast,
    reduce_scatter_tensor,
)
from tallow.distributed.groups import member
from tallow.errors import ArgumentError
from tallow.nn.hooks import STRUCTURE
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter
from tallow.tape.modes import no_grad

WRAPPED = "_fsdp_wrapped_module"  # PyTorch's name; names in a state dict are without it
Policy = Callable[..., bool]


class _Unshard(Function):
    """The whole vector of which each rank has a part; backward averages the gradients and gives each rank its part."""

    @staticmethod
    def forward(ctx: Any, shard: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return _gathered(shard, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        own = empty(grad.numel() // ctx.group.size(), dtype=grad.dtype, device=grad.device)
        reduce_scatter_tensor(own, grad.contiguous(), ReduceOp.AVG, ctx.group)
        return own, None


def _gathered(shard: Tensor, group: ProcessGroup) -> Tensor:
    whole = empty(shard.numel() * group.size(), dtype=shard.dtype, device=shard.device)
    all_gather_into_tensor(whole, shard.detach(), group)
    return whole


class _Place(NamedTuple):
    """A parameter of a unit, by the modules that have it, and the names that they have it by."""

    owners: list[tuple[Module, str]]
    shape: tuple[int, ...]
    numel: int


class FullyShardedDataParallel(Module):
    """Train a model whose parameters, gradients and optimizer state are divided among processes.

    The parameters of the module become one vector, of which each process has an equal part, its parameter. Forward
    collects the whole vector; backward averages its gradient, and gives each process its part. Parts of the model that
    are wrapped themselves, by hand or by a policy, are collected only while they run; what backward needs of them is
    kept until then. Create the optimizer after wrapping.

    Names in `state_dict`, and the tensors there, are those of the module without wrapping.

    Args:
        module: has parameters of one dtype, on one device, all trainable or none, apart from those in wrapped parts.
        process_group: the processes; None means all of them.
        auto_wrap_policy: called with a part, `recurse` and `nonwrapped_numel`, the elements of its parameters; returns
            whether to look into the part (recurse=True), and whether to wrap it.
        sync_module_states: start from the parameters and buffers of the group's first rank.

    Source:  Zhao et al. 2023, arXiv:2304.11277
    Raises:  ArgumentError before init_process_group, and for parameters that differ as above
    """

    def __init__(
        self,
        module: Module,
        process_group: ProcessGroup | None = None,
        *,
        auto_wrap_policy: Policy | None = None,
        sync_module_states: bool = False,
    ) -> None:
        super().__init__()
        self.process_group = member(process_group)
        if sync_module_states:
            _copy_from_first_rank([*module.parameters(), *module.buffers()], self.process_group)
        if auto_wrap_policy is not None:
            for name, child in module.named_children():
                setattr(module, name, _wrapped(child, auto_wrap_policy, self._alike)[0])
        setattr(self, WRAPPED, module)
        self._places = _places(module)
        self._flat_param: Parameter | None = None
        if self._places:
            self._divide()

    def _alike(self, module: Module) -> FullyShardedDataParallel:
        """Return a part of the model, wrapped as the whole is."""
        return type(self)(module, self.process_group)

    @property
    def module(self) -> Module:
        """The wrapped module."""
        inner: Module = self._modules[WRAPPED]  # type: ignore[assignment]
        return inner

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(WRAPPED), name)

    # ------------------------------------------------------------------------------------------------------ the vector

    def _divide(self) -> None:
        """Take the parameters out of their modules, and keep this rank's part of the vector of them."""
        parameters = [owners[0][0]._parameters[owners[0][1]] for owners, _, _ in self._places]
        kinds = {(p.dtype, str(p.device), p.requires_grad) for p in parameters if p is not None}
        if len(kinds) > 1:
            raise ArgumentError(
                "FullyShardedDataParallel: parameters differ in dtype, device or requires_grad: "
                + ", ".join(sorted(f"{d} on {place}, {'trainable' if r else 'frozen'}" for d, place, r in kinds)),
                hint="wrap the parts that differ themselves",
            )
        with no_grad():
            own = self._part_of([p for p in parameters if p is not None])
        self._flat_param = Parameter(own, requires_grad=next(iter(kinds))[2])
        self._put([None] * len(self._places))

    def _part_of(self, tensors: list[Tensor]) -> Tensor:
        """Return this rank's part of the vector of tensors, which ends in zeros."""
        ranks = self.process_group.size()
        count = sum(t.numel() for t in tensors)
        vector = zeros(-(-count // ranks) * ranks, dtype=tensors[0].dtype, device=tensors[0].device)
        start = 0
        for t in tensors:
            vector[start : start + t.numel()] = t.detach().reshape(-1)
            start += t.numel()
        return vector.chunk(ranks)[self.process_group.rank()].clone()

    def _parts(self, whole: Tensor) -> list[Tensor]:
        counts = [place.numel for place in self._places]
        return [
            part.reshape(place.shape)
            for part, place in zip(whole[: sum(counts)].split(counts), self._places, strict=True)
        ]

    def _put(self, tensors: Iterable[Tensor | None]) -> None:
        """Give the modules these tensors as their parameters; None takes the parameter away."""
        STRUCTURE.changes += 1
        for place, tensor in zip(self._places, tensors, strict=True):
            for owner, name in place.owners:
                owner._parameters.pop(name, None)
                if tensor is not None:
                    owner._parameters[name] = tensor  # type: ignore[assignment]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._flat_param is None:
            return self.module(*args, **kwargs)
        self._put(self._parts(_Unshard.apply(self._flat_param, self.process_group)))
        try:
            return self.module(*args, **kwargs)
        finally:
            self._put([None] * len(self._places))

    # ----------------------------------------------------------------------------------------------- whole parameters

    @contextmanager
    def unsharded(self, writeback: bool = True, recurse: bool = True) -> Iterator[None]:
        """Let the modules have their whole parameters within a block. All ranks enter it.

        Args:
            writeback: keep what the block writes to them.
            recurse: those of wrapped parts, too.
        """
        units = [m for m in (self.modules() if recurse else [self]) if isinstance(m, FullyShardedDataParallel)]
        units = [unit for unit in units if unit._parameters.get("_flat_param") is not None]  # not in another block
        shards = [unit._parameters.pop("_flat_param") for unit in units]
        for unit, shard in zip(units, shards, strict=True):
            assert shard is not None
            unit._put(Parameter(part) for part in unit._parts(_gathered(shard, unit.process_group)))
        try:
            yield
        finally:
            for unit, shard in zip(units, shards, strict=True):
                owners = [place.owners[0] for place in unit._places]
                values = [owner._parameters[name] for owner, name in owners]
                if writeback and shard is not None:
                    with no_grad():
                        shard.copy_(unit._part_of([v for v in values if v is not None]))
                unit._put([None] * len(unit._places))
                unit._parameters["_flat_param"] = shard

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the whole parameters and buffers, by their names in the module without wrapping, in every rank."""
        with self.unsharded(writeback=False):
            found = super().state_dict(*args, **kwargs)
        for name in list(found):  # all, so that they keep their order
            found[_clean(name)] = found.pop(name)
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False, **options: Any
    ) -> Any:
        """Load whole parameters and buffers, of which each rank keeps its part; see `Module.load_state_dict`."""
        prefixes = {_clean(f"{prefix}.").lstrip("."): f"{prefix}." for prefix, _ in self.named_modules()}

        def own(name: str) -> str:
            owner, dot, last = name.rpartition(".")
            return prefixes.get(owner + dot, owner + dot) + last

        with self.unsharded():
            return super().load_state_dict(
                {own(name): value for name, value in state_dict.items()}, strict, assign, **options
            )

    # ------------------------------------------------------------------------------------------------------- gradients

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Do nothing: backward averages gradients also here. Their sum over several passes is the same."""
        yield

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients of all ranks so that their norm is at most `max_norm`, and return what it was."""
        grads = [p.grad for p in self.parameters() if p.grad is not None]
        biggest = norm_type == float("inf")
        parts = [g.detach().abs().max() if biggest else g.detach().abs().pow(norm_type).sum() for g in grads]
        total = zeros(())
        for part in parts:
            total = total.maximum(part) if biggest else total + part
        all_reduce(total, ReduceOp.MAX if biggest else ReduceOp.SUM, self.process_group)
        norm = total if biggest else total.pow(1 / norm_type)
        scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.mul_(scale.to(g.dtype))
        return norm


def _places(module: Module) -> list[_Place]:
    """Return the parameters of a module that no wrapped part of it has."""
    found: dict[int, _Place] = {}

    def visit(each: Module) -> None:
        for name, p in each._parameters.items():
            if p is not None:
                place = found.setdefault(id(p), _Place([], tuple(p.shape), p.numel()))
                place.owners.append((each, name))
        for child in each.children():
            if not isinstance(child, FullyShardedDataParallel):
                visit(child)

    visit(module)
    return list(found.values())


def _wrapped(module: Module, policy: Policy, wrap: Callable[[Module], Module]) -> tuple[Module, int]:
    """Wrap the parts of a module that a policy chooses, and the module itself if it does.

    Returns:  the module, or what wraps it, and the number of its elements that are wrapped
    """
    count = sum(p.numel() for p in module.parameters())
    done = 0
    if policy(module=module, recurse=True, nonwrapped_numel=count):
        for name, child in module.named_children():
            new, wrapped = _wrapped(child, policy, wrap)
            setattr(module, name, new)
            done += wrapped
    if policy(module=module, recurse=False, nonwrapped_numel=count - done):
        return wrap(module), count
    return module, done


def _copy_from_first_rank(tensors: list[Tensor], group: ProcessGroup) -> None:
    for each in tensors:
        broadcast(each.detach(), group.ranks[0], group)


def _clean(name: str) -> str:
    return name.replace(f"{WRAPPED}.", "")
