"""torch.distributed.optim: an optimizer whose state is divided among processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tallow.core.tensor import Tensor
from tallow.distributed.collectives import broadcast
from tallow.distributed.groups import ProcessGroup, member
from tallow.distributed.objects import gather_object
from tallow.errors import ArgumentError, GraphError, UnsupportedError
from tallow.lazy_names import names_of
from tallow.optim.optimizer import Optimizer
from tallow.tape.modes import no_grad

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """Divide the state of an optimizer among processes: each updates its parameters, and sends them to the others.

    Every process has the whole model and all gradients, as after the backward pass of DistributedDataParallel.

    Args:
        params: tensors, or dicts for groups, in the same order in all processes.
        optimizer_class: the class of the optimizer, such as `tl.optim.Adam`.
        process_group: the processes; None means all of them.
        parameters_as_bucket_view: has no effect: parameters stay where they are.
        overlap_with_ddp: must be False.
        defaults: the options of the optimizer.

    Source:  Rajbhandari et al. 2020, arXiv:1910.02054, its first stage
    Raises:  UnsupportedError for `overlap_with_ddp`; as the optimizer
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: Callable[..., Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise UnsupportedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp=True", hint="omit it: the result is equal"
            )
        self.process_group = member(process_group)
        self._owners: dict[int, int] = {}  # id of a parameter -> the rank in the group that updates it
        self._loads = [0] * self.process_group.size()
        self._whole: dict[int, Any] | None = None  # the state of all parameters, once it is consolidated here
        self._optimizer_class, self._options = optimizer_class, defaults
        super().__init__(params, defaults)
        self.optim = self._optimizer()
        self.state = self.optim.state
        self._take_options(self.optim.param_groups, self.param_groups, new_only=True)

    def _optimizer(self) -> Optimizer:
        """Return the optimizer of this rank's parameters."""
        for group in self.param_groups:
            self._assign(group["params"])
        return self._optimizer_class(
            [{**group, "params": self._own(group["params"])} for group in self.param_groups], **self._options
        )

    def _assign(self, parameters: Iterable[Tensor]) -> None:
        """Give each parameter, the largest first, to the rank that has the fewest elements."""
        for parameter in sorted(parameters, key=lambda p: -p.numel()):
            if id(parameter) not in self._owners:
                rank = self._loads.index(min(self._loads))
                self._owners[id(parameter)] = rank
                self._loads[rank] += parameter.numel()

    def _own(self, parameters: Iterable[Tensor]) -> list[Tensor]:
        return [p for p in parameters if self._owners[id(p)] == self.process_group.rank()]

    @staticmethod
    def _take_options(source: list[dict[str, Any]], target: list[dict[str, Any]], new_only: bool = False) -> None:
        for ours, theirs in zip(target, source, strict=True):
            ours.update((k, v) for k, v in theirs.items() if k != "params" and not (new_only and k in ours))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, whose parameters are given to the ranks as well."""
        super().add_param_group(param_group)
        if "optim" in self.__dict__:
            group = self.param_groups[-1]
            self._assign(group["params"])
            self.optim.add_param_group({**group, "params": self._own(group["params"])})
            self._take_options(self.optim.param_groups, self.param_groups, new_only=True)

    def step(self, closure: Any = None) -> Any:
        """Update this rank's parameters, then get those of the other ranks."""
        self._take_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step() if closure is None else self.optim.step(closure)
        ranks = self.process_group.ranks
        with no_grad():
            for group in self.param_groups:
                works = [
                    broadcast(p.detach(), ranks[self._owners[id(p)]], self.process_group, async_op=True)
                    for p in group["params"]
                ]
                for work in works:
                    assert work is not None
                    work.wait()
        return loss

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the state in the rank `to` of the job, where `state_dict` can be called next. All ranks call it."""
        is_target = self.process_group.index(to, "to") == self.process_group.rank()
        parts: list[Any] | None = [None] * self.process_group.size() if is_target else None
        gather_object(super().state_dict()["state"], parts, to, self.process_group)
        self._whole = None if parts is None else {index: state for part in parts for index, state in part.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parameters, as one optimizer's. Raises: GraphError before `consolidate_state_dict`"""
        if self._whole is None:
            raise GraphError(
                "Optimizer state has not been consolidated on this rank",
                hint="call consolidate_state_dict(to=rank) on all ranks first",
            )
        return {**super().state_dict(), "state": dict(sorted(self._whole.items()))}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of all parameters; each rank keeps its part.

        Raises:  ArgumentError for another number of parameters
        """
        flat = [p for group in self.param_groups for p in group["params"]]
        saved = [index for group in state_dict["param_groups"] for index in group["params"]]
        if len(saved) != len(flat):
            raise ArgumentError(f"load_state_dict: a state of {len(saved)} parameters for {len(flat)}")
        own = [index for index, p in zip(saved, flat, strict=True) if self._owners[id(p)] == self.process_group.rank()]
        place = {index: i for i, index in enumerate(own)}
        groups = [
            {**group, "params": [place[index] for index in group["params"] if index in place]}
            for group in state_dict["param_groups"]
        ]
        state = {place[index]: each for index, each in state_dict["state"].items() if index in place}
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self.state = self.optim.state
        self._take_options(self.optim.param_groups, self.param_groups)


__getattr__, __dir__ = names_of(__name__)
