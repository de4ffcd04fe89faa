"""torch.fx.experimental.symbolic_shapes: conditions on unknown sizes. Sizes are known, so each is True or False."""

from __future__ import annotations

from typing import Any

from tallow.compat.absent import absent

_ABSENT = (
    "ConvertIntKey Specialization StatefulSymbolicContext StatelessSymbolicContext SubclassSymbolicContext "
    "SymIntEqByExpr SymIntSymbolicContext SymbolicContext TrackedFake ValueRangesSLoc canonicalize_bool_expr "
    "check_consistent compute_unbacked_bindings is_accessor_node is_symbol_binding_fx_node rebind_unbacked "
    "resolve_unbacked_bindings"
)
for _name in _ABSENT.split():
    globals()[_name] = absent(f"torch.fx.experimental.symbolic_shapes.{_name}", "sizes are known: use them as numbers")


class GuardOnDataDependentSymNode(RuntimeError):
    """A condition on an unknown size, of which there is none."""


def guard_or_false(a: Any) -> bool:
    """Return whether a condition is true."""
    return bool(a)


guard_or_true = statically_known_true = guard_size_oblivious = guard_or_false


def statically_known_false(x: Any) -> bool:
    """Return whether a condition is false."""
    return not x


def sym_and(x: Any, *others: Any) -> bool:
    """Return whether all conditions are true."""
    return all((x, *others))


def sym_or(x: Any, *others: Any) -> bool:
    """Return whether one of the conditions is true."""
    return any((x, *others))


def sym_eq(x: Any, y: Any) -> bool:
    """Return whether two numbers, or two sequences of them, are equal."""
    return bool(tuple(x) == tuple(y)) if isinstance(x, list | tuple) else bool(x == y)


def guard_scalar(a: Any) -> Any:
    """Return a number as it is."""
    return a


def optimization_hint(a: Any, fallback: Any = None) -> Any:
    """Return a number as it is."""
    return a


guarding_hint_or_throw = guard_scalar


def free_symbols(val: Any) -> set[Any]:
    """Return the unknown sizes in a value: none."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """Return False: a value depends on no unknown size."""
    return False


has_free_unbacked_symbols = has_free_symbols


def has_static_value(a: Any) -> bool:
    """Return True: numbers are known."""
    return True


def is_concrete_int(a: Any) -> bool:
    """Return whether a value is an int."""
    return isinstance(a, int)


def is_concrete_float(a: Any) -> bool:
    """Return whether a value is a float."""
    return isinstance(a, float)


def is_concrete_bool(a: Any) -> bool:
    """Return whether a value is a bool."""
    return isinstance(a, bool)
