"""L-BFGS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tallow.core.apply import check_writable
from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.dtypes import HALVES, Array
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, DtypeError
from tallow.optim.optimizer import Closure, Group, Optimizer, parts_of
from tallow.optim.options import check_not_negative
from tallow.optim.state_checks import number_fault
from tallow.optim.strong_wolfe import Point, strong_wolfe
from tallow.tape.graph import note_write
from tallow.tape.modes import enable_grad

FLAT_CURVATURE = 1e-10  # a step with less curvature carries no information and is not stored


# Entries of the state, by kind.
VECTORS, HISTORIES, CURVATURES = ("d", "prev_flat_grad"), ("old_dirs", "old_stps"), "ro"
NUMBERS = ("func_evals", "n_iter", "t", "prev_loss", "H_diag")


class LBFGS(Optimizer):
    """Newton's method with the Hessian approximated from the last `history_size` steps.

    Each step runs up to `max_iter` iterations and evaluates the closure in each; all parameters form one vector.

    Args:    as torch.optim.LBFGS; line_search_fn: None for steps of length lr, or "strong_wolfe"

    Dtypes:  float32 or float64, and complex numbers of them, whose parts count as elements
    Source:  Nocedal & Wright, "Numerical Optimization", 2nd ed., algorithms 7.4 and 7.5

    Example:
        >>> import tallow as tl
        >>> x = tl.tensor([3.0, -4.0], requires_grad=True)
        >>> optimizer = tl.optim.LBFGS([x], line_search_fn="strong_wolfe")
        >>> def loss():
        ...     optimizer.zero_grad()
        ...     y = ((x - tl.tensor([1.0, 2.0])) ** 2).sum()
        ...     y.backward()
        ...     return y
        >>> first = optimizer.step(loss)
        >>> x.detach()
        tensor([1., 2.])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_not_negative(lr=lr)
        if line_search_fn not in (None, "strong_wolfe"):
            raise ArgumentError(
                f"line_search_fn={line_search_fn!r}: only 'strong_wolfe' is supported",
                hint="use None or 'strong_wolfe'",
            )
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)

    def add_param_group(self, param_group: Group) -> None:
        if self.param_groups:
            raise ArgumentError("LBFGS doesn't support per-parameter options (parameter groups)")
        super().add_param_group(param_group)
        for i, param in enumerate(self.param_groups[0]["params"]):
            if param.array.dtype in HALVES:
                raise DtypeError(
                    f"LBFGS: parameter {i} is {param.dtype}: differences of gradients need more precision",
                    hint="use model.float()",
                )

    def _fault(self, name: str, value: Any, param: Tensor) -> str | None:
        numel = sum(parts_of(p.array).size for p in self.param_groups[0]["params"])
        if name in VECTORS:
            return None if _is_vector(value, numel) else f"is not a vector of {numel} elements"
        if name in HISTORIES:
            is_history = isinstance(value, list) and all(_is_vector(vector, numel) for vector in value)
            return None if is_history else f"is not a list of vectors of {numel} elements"
        if name == CURVATURES:
            is_list = isinstance(value, list) and not any(map(number_fault, value))
            return None if is_list else "is not a list of numbers"
        return number_fault(value) if name in NUMBERS else None

    def _check_state(self, state: dict[Any, dict[str, Any]], saved: Sequence[Group]) -> None:
        super()._check_state(state, saved)
        for entry in state.values():
            lengths = {name: len(entry.get(name, ())) for name in (*HISTORIES, CURVATURES)}
            if len(set(lengths.values())) > 1:
                raise CheckpointError(f"the state dict has histories of different lengths: {lengths}")

    def step(self, closure: Closure | None = None) -> Any:
        """Run up to `max_iter` iterations.

        Args:
            closure: clears the gradients, computes the loss, calls backward() and returns the loss.

        Returns: the loss before the step.
        """
        if closure is None:
            raise ArgumentTypeError(
                "LBFGS.step() needs a closure that recomputes the loss and its gradients",
                hint="def closure(): optimizer.zero_grad(); loss = ...; loss.backward(); return loss",
            )
        with enable_grad():
            return _Descent(self, closure).run()


def _is_vector(value: Any, numel: int) -> bool:
    return isinstance(value, Tensor) and tuple(value.shape) == (numel,)


class _Descent:
    """One call of `step`: the optimizer's state as arrays, and the loss as a function of one vector."""

    def __init__(self, optimizer: LBFGS, closure: Closure) -> None:
        (self.group,) = optimizer.param_groups
        self.params = self.group["params"]
        for param in self.params:
            check_writable(param, "LBFGS")
        self.state = optimizer.state[self.params[0]]  # the first parameter holds the state of all, as in PyTorch
        self.closure = closure
        self.xp = array_module(self.params[0].array)
        self.state.setdefault("func_evals", 0)
        self.state.setdefault("n_iter", 0)
        self.evaluations = 0
        self.differences = [t.array for t in self.state.get("old_dirs", ())]  # differences of consecutive gradients
        self.steps = [t.array for t in self.state.get("old_stps", ())]
        self.inverse_curvatures = [float(r) for r in self.state.get("ro", ())]
        self.scale = float(self.state.get("H_diag", 1.0))

    def run(self) -> Any:
        group, state = self.group, self.state
        first_loss = self.closure()
        self._count_evaluations(1)
        loss, grad = float(first_loss), self._gradient()
        if self._largest(grad) <= group["tolerance_grad"]:
            return first_loss
        direction = state["d"].array if "d" in state else None
        previous_grad = state["prev_flat_grad"].array if "prev_flat_grad" in state else None
        distance = float(state.get("t", 0.0))
        previous_loss = loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if direction is None or previous_grad is None:
                direction = -grad
                distance = min(1.0, 1.0 / float(self.xp.abs(grad).sum())) * float(group["lr"])
            else:
                self._remember(grad - previous_grad, direction * distance)
                direction = self._newton_direction(grad)
                distance = float(group["lr"])
            previous_grad, previous_loss = grad, loss
            slope = self.xp.dot(grad, direction)
            if slope > -group["tolerance_change"]:
                break
            is_last = iteration == group["max_iter"]
            loss, grad, distance = self._advance(loss, grad, direction, distance, slope, is_last)
            if (
                is_last
                or self.evaluations >= group["max_eval"]
                or self._largest(grad) <= group["tolerance_grad"]
                or self._largest(direction) * distance <= group["tolerance_change"]
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        state |= {
            "d": wrap(direction), "t": distance, "prev_flat_grad": wrap(previous_grad), "prev_loss": previous_loss,
            "old_dirs": [wrap(y) for y in self.differences], "old_stps": [wrap(s) for s in self.steps],
            "ro": self.inverse_curvatures, "H_diag": self.scale,
        }  # fmt: skip
        return first_loss

    def _remember(self, difference: Array, step: Array) -> None:
        curvature = float(self.xp.dot(difference, step))
        if curvature <= FLAT_CURVATURE:
            return
        if len(self.steps) == self.group["history_size"]:
            for history in (self.differences, self.steps, self.inverse_curvatures):
                del history[0]
        self.differences.append(difference)
        self.steps.append(step)
        self.inverse_curvatures.append(1.0 / curvature)
        self.scale = curvature / float(self.xp.dot(difference, difference))

    def _newton_direction(self, grad: Array) -> Array:
        """Return minus the inverse Hessian times the gradient, by the two-loop recursion."""
        history = list(zip(self.differences, self.steps, self.inverse_curvatures, strict=True))
        direction = -grad
        weights = []
        for difference, step, rho in reversed(history):
            weights.append(float(self.xp.dot(step, direction)) * rho)
            direction -= weights[-1] * difference
        direction *= self.scale
        for (difference, step, rho), weight in zip(history, reversed(weights), strict=True):
            direction += (weight - float(self.xp.dot(difference, direction)) * rho) * step
        return direction

    def _advance(
        self, loss: float, grad: Array, direction: Array, distance: float, slope: Any, is_last: bool
    ) -> tuple[float, Array, float]:
        """Move along the direction; return the new loss, the new gradient and the distance."""
        if self.group["line_search_fn"] is None:
            self._move(direction, distance)
            if is_last:  # no further evaluation is used
                return loss, grad, distance
            loss = float(self.closure())
            self._count_evaluations(1)
            return loss, self._gradient(), distance
        origin = [param.array.copy() for param in self.params]

        def evaluate(t: np.float64) -> Point:
            self._move(direction, float(t))
            value = np.float64(float(self.closure()))
            gradient = self._gradient()
            for param, array in zip(self.params, origin, strict=True):
                param.array[...] = array
                note_write(param)
            return Point(t, value, gradient, np.float64(float(self.xp.dot(gradient, direction))))

        start = Point(np.float64(0), np.float64(loss), grad, np.float64(float(slope)))
        best, evaluations = strong_wolfe(
            evaluate, start, np.float64(distance), self._largest(direction), 1e-9,
            self.group["max_eval"] - self.evaluations,
        )  # fmt: skip
        self._count_evaluations(evaluations)
        self._move(direction, float(best.distance))
        return float(best.loss), best.grad, float(best.distance)

    def _count_evaluations(self, number: int) -> None:
        self.evaluations += number
        self.state["func_evals"] += number

    def _gradient(self) -> Array:
        """Return all gradients as one new vector, with zeros for missing gradients."""
        grads = [self.xp.zeros_like(p.array) if p.grad is None else p.grad.array for p in self.params]
        return self.xp.concatenate([parts_of(grad).reshape(-1) for grad in grads])

    def _move(self, direction: Array, distance: float) -> None:
        start = 0
        for param in self.params:
            array = parts_of(param.array)
            part = direction[start : start + array.size]
            array += (distance * part).reshape(array.shape).astype(array.dtype, copy=False)
            note_write(param)
            start += array.size

    def _largest(self, vector: Array) -> float:
        return float(self.xp.abs(vector).max())
