"""torch.utils.flop_counter: count the floating-point operations of products and convolutions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from tallow.core import watching
from tallow.core.tensor import Tensor
from tallow.nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from tallow.ops.table import Op
from tallow.tape.hooks import RemovableHandle

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]

Shape = Sequence[int]
Counts = dict[Any, int]


def _mm(a: Shape, b: Shape, out: Shape) -> int:
    return 2 * math.prod(out) * a[-1]


def _addmm(_: Shape, a: Shape, b: Shape, out: Shape) -> int:
    return _mm(a, b, out)


def _addbmm(_: Shape, a: Shape, b: Shape, out: Shape) -> int:
    return 2 * math.prod(a) * b[-1]


def _linear(input: Shape, weight: Shape, *rest: Shape) -> int:
    return 2 * math.prod(input) * weight[0]


def _convolution(input: Shape, weight: Shape, *rest: Shape) -> int:
    return 2 * math.prod(rest[-1][2:] if len(input) == len(rest[-1]) else ()) * input[0] * math.prod(weight)


def _transposed_convolution(input: Shape, weight: Shape, *rest: Shape) -> int:
    return 2 * math.prod(input[2:]) * input[0] * math.prod(weight)


def _attention(query: Shape, key: Shape, value: Shape, *rest: Shape) -> int:
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


_CONVOLUTIONS = {f"conv{d}d": _convolution for d in (1, 2, 3)}
_CONVOLUTIONS |= {f"conv_transpose{d}d": _transposed_convolution for d in (1, 2, 3)}
# Op -> the operations of a call, from the shapes of its operands and of its result.
flop_registry: dict[Any, Callable[..., int]] = {
    "mm": _mm,
    "bmm": _mm,
    "mv": _mm,
    "dot": _mm,
    "matmul": _mm,
    "addmm": _addmm,
    "addmv": _addmm,
    "baddbmm": _addmm,
    "addbmm": _addbmm,
    "linear": _linear,
    "scaled_dot_product_attention": _attention,
    **_CONVOLUTIONS,
}


def _backward_flops(op: Op, flops: int, call: dict[str, Any]) -> int:
    """Return the operations of the gradients, by those of the value. A vector that is added needs none."""
    if op.name == "scaled_dot_product_attention":  # five products in place of two: the scores are computed again
        return 5 * flops // 2
    operands = [name for name in op.names if isinstance(call.get(name), Tensor)]
    added = "bias" if "weight" in operands else "input" if op.name.startswith(("add", "baddbmm")) else ""
    needed = [name for name in operands if name != added and call[name].requires_grad]
    # PyTorch counts the gradient of a grouped convolution's weight as that of a whole one.
    return sum(flops * (call.get("groups", 1) if name == "weight" else 1) for name in needed)


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Any], Any]:
    """Set the formula of an op, or of several. A decorator; the function gets shapes, and `out_shape=`.

    Args:
        get_raw: the function gets the tensors themselves, and `out_val=`.
    """

    def register(formula: Any) -> Any:
        def of_shapes(*shapes: Any) -> int:
            *operands, out = shapes
            return int(formula(*operands, **{"out_val" if get_raw else "out_shape": out}))

        for target in targets if isinstance(targets, Iterable) and not isinstance(targets, str) else [targets]:
            flop_registry[_name_of(target)] = of_shapes
        return formula

    return register


def _name_of(target: Any) -> str:
    """Return the name of an op, given by its name or as `torch.ops.aten.mm`."""
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    return name.rpartition("::")[2].partition(".")[0]


def flops_of_call(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int | None:
    """Return the floating-point operations of a call, or None for an op without a formula."""
    formula = flop_registry.get(op.name)
    if formula is None:
        return None
    bound = {**dict(zip(op.names, args, strict=False)), **kwargs}
    operands = [bound[name].shape for name in op.names if isinstance(bound.get(name), Tensor)]
    return formula(*operands, result.shape)


class FlopCounterMode:
    """Count the operations of the products and convolutions inside, of backward too.

    Args:
        mods: has no effect; modules are found by their calls.
        depth: how many levels of modules `get_table` shows.
        display: print the table at the end.
        custom_mapping: further formulas, by op.

    Example:
        with FlopCounterMode(display=False) as counter:
            model(x).sum().backward()
        counter.get_total_flops()
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        self.depth, self.display = depth, display
        self.custom_mapping = {_name_of(op): formula for op, formula in (custom_mapping or {}).items()}
        self.flop_counts: defaultdict[str, Counts] = defaultdict(lambda: defaultdict(int))
        self._parents = ["Global"]
        self._names: dict[int, str] = {}
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> Self:
        self.flop_counts.clear()
        watching.watch(self._count)
        self._handles = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module),
        ]
        return self

    def __exit__(self, *exc_info: object) -> None:
        watching.unwatch(self._count)
        for handle in self._handles:
            handle.remove()
        if self.display:
            print(self.get_table(self.depth))

    def _enter_module(self, module: Any, args: Any) -> None:
        name = self._names.setdefault(id(module), type(module).__name__)
        for child, below in module.named_children():
            self._names.setdefault(id(below), f"{name}.{child}")
        self._parents.append(name)

    def _leave_module(self, module: Any, args: Any, output: Any) -> None:
        self._parents.pop()

    def _count(self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = function(*args, **kwargs)
        formula = self.custom_mapping.get(op.name)
        flops = flops_of_call(op, args, kwargs, result) if formula is None else formula(*args, **kwargs, out_val=result)
        if flops is None:
            return result
        parents = list(dict.fromkeys(self._parents))
        self._add(parents, f"aten.{op.name}", flops)
        if isinstance(result, Tensor) and result.requires_grad:
            work = _backward_flops(op, flops, {**dict(zip(op.names, args, strict=False)), **kwargs})
            result.register_hook(lambda _: self._add(parents, f"aten.{op.name}_backward", work))
        return result

    def _add(self, parents: list[str], name: str, flops: int) -> None:
        for parent in parents:
            self.flop_counts[parent][name] += flops

    def get_total_flops(self) -> int:
        """Return the operations of all."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, Counts]:
        """Return the operations by module, "Global" for all, and by op."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of the operations by module and op, `depth` levels of modules deep."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        lines = [("Module", "FLOP", "% Total")]
        for module in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            level = 0 if module == "Global" else module.count(".") + 1
            if level > depth:
                continue
            counts = self.flop_counts[module]
            rows = [(module, sum(counts.values())), *((f" - {op}", n) for op, n in counts.items())]
            lines += [(" " * level + name, f"{n:,}", f"{100 * n / total if total else 0:.2f}%") for name, n in rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in lines]
        return "\n".join([text[0], "  ".join("-" * width for width in widths), *text[1:]])
