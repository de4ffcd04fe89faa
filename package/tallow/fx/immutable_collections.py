"""The lists and dicts in the arguments of nodes. They refuse changes, because a node keeps track of its inputs."""

from __future__ import annotations

from typing import Any, NoReturn

from tallow.errors import ArgumentTypeError


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise ArgumentTypeError(
        f"{type(self).__name__} object does not support mutation",
        hint="make a new list or dict and assign it: node.args = (...), node.kwargs = {...}",
    )


class immutable_list(list[Any]):
    """A list that cannot be changed."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that cannot be changed."""

    clear = pop = popitem = setdefault = update = _refuse
    __delitem__ = __ior__ = __setitem__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_dict, (tuple(self.items()),)
